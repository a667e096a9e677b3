#include "strategies/layout/stage_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/index.hpp"
#include "strategies/key_place.hpp"

namespace shardsim {
namespace {

bool has_role(const Workload& workload, const Tensor& tensor, LabelRole role) {
  return std::any_of(tensor.dims.begin(), tensor.dims.end(), [&](const Dim& dim) {
    return std::any_of(dim.begin(), dim.end(),
                       [&](LabelId label) { return workload.labels[at(label)].role == role; });
  });
}

// Of the matrices that a block multiplies with.
std::int64_t cost_of(const Workload& workload, const Block& block) {
  std::int64_t of_attention = 0;
  std::int64_t others = 0;
  std::set<TensorId> counted;
  for (const Op& op : block.forward) {
    if (op.function != Function::matmul && op.function != Function::linear &&
        op.function != Function::grouped_matmul) {
      continue;
    }
    for (const Operand& operand : op.operands) {
      const Tensor& tensor = workload.tensors[at(operand.tensor)];
      if (tensor.role != TensorRole::parameter || tensor.dims.size() < 2) continue;
      if (!counted.insert(operand.tensor).second) continue;
      const std::int64_t elements = workload.elements(tensor.dims);
      if (has_role(workload, tensor, LabelRole::heads)) {
        of_attention = std::max(of_attention, elements);  // the query's, or the output's
      } else {
        others += elements;
      }
    }
  }
  return 4 * of_attention + others;
}

}  // namespace

Pipeline dealt_by_cost(const Workload& workload, Pipeline pipeline) {
  const std::int32_t ranks = pipeline.schedule.ranks;
  const Place place = place_of_key(pipeline.place, "layers");
  if (pipeline.schedule.virtual_stages != 1) {
    throw InputError(place, fmt::format("layers are dealt out by cost to one stage of each rank, "
                                        "not to {}; say the layers of each stage",
                                        pipeline.schedule.virtual_stages));
  }
  std::vector<std::int64_t> costs;  // up to and with each block of the order
  for (const BlockInstance& instance : workload.order) {
    const std::int64_t before = costs.empty() ? 0 : costs.back();
    costs.push_back(before + cost_of(workload, workload.blocks[at(instance.block)]));
  }
  std::vector<std::int32_t> counts(static_cast<std::size_t>(ranks), 0);
  std::int32_t rank = 0;
  std::int32_t last = 0;  // the one with the last product
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (workload.blocks[at(workload.order[i].block)].is_layer) ++counts[at(rank)];
    last = rank;
    const double share = static_cast<double>(rank + 1) / ranks;
    if (static_cast<double>(costs[i]) > static_cast<double>(costs.back()) * share) ++rank;
  }
  if (last != ranks - 1) {
    throw InputError(place, fmt::format("by cost {} of {} stages have all there is, and the others "
                                        "nothing; say the layers of each stage",
                                        last + 1, ranks));
  }
  pipeline.stages.counts = std::move(counts);
  pipeline.stages.by_cost = false;
  return pipeline;
}

}  // namespace shardsim
