#include "sim/collectives/permute_pairs.hpp"

namespace shardsim {

std::vector<std::pair<std::int64_t, std::int64_t>> permute_pairs(const Mesh& mesh,
                                                                 const Collective& collective) {
  if (!collective.source_targets.empty()) return collective.source_targets;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  const auto& groups = collective.groups.empty() ? mesh.groups(collective.axes) : collective.groups;
  for (const auto& group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      pairs.emplace_back(group[i], group[(i + 1) % group.size()]);
    }
  }
  return pairs;
}

}  // namespace shardsim
