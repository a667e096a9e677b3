// What a way to partition one op would cost, found by doing it on a scratch program.
//
//   Trial trial(context.devices());
//   const std::vector<Sharded> made = method(trial.argument(operand), trial.argument(indices));
//   trial.cost("stablehlo.gather", made)
//
// Costs are XLA's (openxla/xla xla/service/spmd: MemoryCostInBytes, CommunicationCostInBytes), in
// bytes per device: the largest op of that name or collective by operands and result, then the sum
// over collectives of
//   all-gather, all-to-all   (n-1)/n of the result      all-reduce   twice the operand
//   permute                  the operand
#pragma once

#include <algorithm>
#include <compare>
#include <limits>
#include <utility>
#include <vector>

#include "spmd/sharded.hpp"

namespace shardsim::spmd {

struct TrialCost {
  std::int64_t memory = std::numeric_limits<std::int64_t>::max();
  std::int64_t communication = std::numeric_limits<std::int64_t>::max();

  friend auto operator<=>(const TrialCost&, const TrialCost&) = default;
};

class Trial {
 public:
  explicit Trial(int devices);
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // A value of which nothing is known but its tiles.
  [[nodiscard]] Sharded argument(const Sharded& like);
  // Of everything that the results need.
  [[nodiscard]] TrialCost cost(std::string_view op, const std::vector<Sharded>& results) const;

 private:
  stablehlo::Module module_;
  Builder builder_;
  Context context_;
};

// Ways to partition an op by what they cost; of equal costs the first comes first.
template <typename Methods, typename CostOf>
[[nodiscard]] Methods cheapest_first(Methods methods, const CostOf& cost_of) {
  std::vector<std::pair<TrialCost, std::size_t>> order;
  for (const auto& method : methods) order.emplace_back(cost_of(method), order.size());
  std::sort(order.begin(), order.end());
  Methods sorted = methods;
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = methods[order[i].second];
  return sorted;
}

}  // namespace shardsim::spmd
