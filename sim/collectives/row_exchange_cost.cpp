#include "sim/collectives/row_exchange_cost.hpp"

#include <algorithm>
#include <optional>

namespace shardsim {

CostBreakdown row_exchange_cost(const ClusterRates& rates, const NodeSpread& spread, Bytes payload,
                                const RowVisits& visits) {
  const auto bytes = static_cast<double>(payload.count());
  const auto members = static_cast<double>(spread.members);
  const auto most = static_cast<double>(spread.most);
  const double others = spread.nodes == 1 ? 0 : static_cast<double>(spread.members - spread.fewest);
  const double inside = bytes / members * (most - 1 + others * (most - 1) / most);
  const auto nodes = static_cast<double>(spread.nodes);
  const double unit = bytes / copies_by_part(visits.places, visits.visited, spread.members);
  const double across =
      unit * copies_by_part(visits.places, visits.visited, spread.nodes) * (nodes - 1) / nodes;

  CostBreakdown cost;
  cost.algorithm = spread.nodes == 1 ? "rows in the node" : "rows by node, then in the node";
  std::optional<Seconds> time_inside;
  std::optional<Seconds> time_across;
  if (inside > 0) {
    time_inside = rates.inside(inside, spread.most);
    cost.latency += rates.step_inside();
  }
  if (spread.nodes > 1) {
    time_across = rates.across(across, 1);
    cost.latency += rates.step_across();
  }
  cost.transfer = std::max(time_inside.value_or(Seconds(0)), time_across.value_or(Seconds(0)));
  cost.links = links_of(time_inside, time_across);
  cost.memory = traffic_of_thread_blocks(CollectiveKind::all_to_all, inside + across, across);
  cost.thread_blocks = visits.multiprocessors;
  return cost;
}

}  // namespace shardsim
