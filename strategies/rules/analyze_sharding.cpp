#include "strategies/rules/analyze_sharding.hpp"

#include <fmt/format.h>

#include "sharding/rule_error.hpp"
#include "strategies/rules/submesh_index.hpp"

namespace shardsim {

EformerAnalysis eformer_analysis(const ParameterTree& tree, const std::vector<PartitionSpec>& specs,
                                 const Mesh& mesh) {
  EformerAnalysis analysis;
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    const ParameterLeaf& leaf = tree.leaves[i];
    analysis.total_parameters += element_count(leaf);
    if (!specs[i].empty()) analysis.sharded_parameters += element_count(leaf);
    for (const SpecEntry& entry : specs[i]) {
      if (entry.is_whole()) continue;
      if (entry.axes.size() != 1) {
        throw RuleError(
            "KeyError", leaf.place,
            fmt::format("analyze_sharding_strategy takes one axis per dimension, not {}",
                        to_string(PartitionSpec{entry})));
      }
      static_cast<void>(axes_size(entry.axes, mesh, leaf.place));
    }
  }
  return analysis;
}

}  // namespace shardsim
