#include "sim/collectives/row_exchange_cost.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace shardsim {
namespace {

const RowExchangeTable* table_of(const std::optional<KernelData>& kernels,
                                 const RowVisits& visits) {
  if (!kernels) return nullptr;
  const auto found = kernels->row_exchange.find(std::string(name_of(visits.kernels)));
  if (found == kernels->row_exchange.end()) return nullptr;
  return visits.combines ? &found->second.combine : &found->second.dispatch;
}

// On the multiprocessors at work, of rows of so many bytes all together.
Seconds time_on_device(const RowExchangeTable& table, const RowVisits& visits, double bytes,
                       std::int64_t members) {
  const auto row = static_cast<double>(visits.row.count());
  const double rows = bytes / row;
  const double tokens = rows / copies_by_part(visits.places, visits.visited, members);
  const Seconds work =
      tokens * (table.token + row * table.token_byte) + rows * (table.row + row * table.row_byte);
  return work * (1.0 / visits.multiprocessors);
}

}  // namespace

CostBreakdown row_exchange_cost(const ClusterRates& rates, const NodeSpread& spread, Bytes payload,
                                const RowVisits& visits, const std::optional<KernelData>& kernels) {
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
  if (const RowExchangeTable* const table = table_of(kernels, visits)) {
    cost.latency = spread.nodes > 1 ? table->overhead_across : table->overhead;
    const Seconds on_device = time_on_device(*table, visits, bytes, spread.members);
    if (on_device > cost.transfer) {
      const double busy = cost.transfer.count() / on_device.count();
      for (LinkUse& link : cost.links) link = {link.level, link.out * busy, link.in * busy};
      cost.transfer = on_device;
    }
  }
  cost.memory = traffic_of_thread_blocks(CollectiveKind::all_to_all, inside + across, across);
  cost.thread_blocks = visits.multiprocessors;
  return cost;
}

}  // namespace shardsim
