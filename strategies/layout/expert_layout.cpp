#include "strategies/layout/expert_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/index.hpp"

namespace shardsim {

std::optional<CutAxes> cut_minor(const AxisList& axes, std::int64_t devices) {
  CutAxes cut;
  std::int64_t left = devices;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const std::int64_t within = std::gcd(left, axis->size);
    const std::int64_t outside = axis->size / within;
    left /= within;
    if (left > 1 && outside > 1) return std::nullopt;
    if (outside > 1) cut.rest.insert(cut.rest.begin(), {axis->axis, axis->pre_size, outside});
    if (within > 1) {
      cut.minor.insert(cut.minor.begin(), {axis->axis, axis->pre_size * outside, within});
    }
  }
  if (left > 1) return std::nullopt;
  return cut;
}

// A device has e of n experts; none of the k that a token visits is among them with probability
// C(n - e, k) / C(n, k), the product of (n - e - i) / (n - i) for i from 0 to k - 1.
Sharding computed_rows(const ExpertLayout& experts, std::size_t rank) {
  Sharding sharding = replicated(rank);
  sharding.dims[0].axes = experts.parallel;
  sharding.dims[1].axes = experts.data;
  return sharding;
}

Sharding sent_rows(const ExpertLayout& experts, std::size_t rank) {
  Sharding sharding = computed_rows(experts, rank);
  AxisList& slots = sharding.dims[1].axes;
  if (is_within(experts.tensor, experts.tokens)) {
    slots.insert(slots.end(), experts.tensor.begin(), experts.tensor.end());
  }
  return sharding;
}

std::int64_t biased_experts(const Workload& workload, std::int32_t block) {
  std::int64_t experts = 0;
  for (const Tensor& tensor : workload.tensors) {
    const bool is_of_block = tensor.role == TensorRole::buffer && tensor.block == block;
    if (!is_of_block || tensor.dims.empty()) continue;
    const Label& label = workload.labels[at(tensor.dims.front().front())];
    if (label.role == LabelRole::experts) experts += label.size;
  }
  return experts;
}

void check_has_experts(const Workload& workload, const ExpertLayout& experts,
                       const Place& strategy) {
  if (!experts.is_told) return;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      if (op.function == Function::exchange) return;
    }
  }
  throw InputError({strategy.file, strategy.pointer + "/experts/parallel"},
                   fmt::format("{} has no experts that could be dealt out", workload.model));
}

void check_shares(const Workload& workload, const ExpertLayout& experts, const Place& strategy) {
  const auto& shares = experts.shares.of_layer;
  if (shares.empty()) return;
  const Place place{strategy.file, strategy.pointer + "/experts/balance"};
  std::set<std::int32_t> with_experts;
  for (const Block& block : workload.blocks) {
    const auto op = std::find_if(block.forward.begin(), block.forward.end(),
                                 [](const Op& one) { return one.function == Function::exchange; });
    if (!block.is_layer || op == block.forward.end()) continue;
    const std::int64_t count = workload.labels[at(op->results.front().dims[0].front())].size;
    for (const std::int32_t number : block.numbers) {
      const auto found = shares.find(number);
      if (found == shares.end()) {
        throw InputError(place, fmt::format("layer {} has experts and no shares of them", number));
      }
      if (static_cast<std::int64_t>(found->second.size()) != count) {
        throw InputError(place, fmt::format("layer {} has {} experts, and shares of {}", number,
                                            count, found->second.size()));
      }
      with_experts.insert(number);
    }
  }
  for (const auto& [layer, list] : shares) {
    if (with_experts.contains(layer)) continue;
    throw InputError(place, fmt::format("layer {} has shares of {} experts, and the model none "
                                        "there",
                                        layer, list.size()));
  }
}

bool is_of_routed_experts(const Workload& workload, TensorId parameter) {
  return std::any_of(workload.blocks.begin(), workload.blocks.end(), [&](const Block& block) {
    return std::any_of(block.forward.begin(), block.forward.end(), [&](const Op& op) {
      return op.function == Function::grouped_matmul &&
             std::any_of(op.operands.begin(), op.operands.end(),
                         [&](const Operand& operand) { return operand.tensor == parameter; });
    });
  });
}

}  // namespace shardsim
