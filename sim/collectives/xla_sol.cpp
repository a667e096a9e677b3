#include "sim/collectives/xla_sol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.hpp"
#include "sim/collectives/cluster_cost.hpp"

namespace shardsim {
namespace {

constexpr double header_overhead = 0.025;

// sol_latency_estimator.cc: a table by device, all of it scaled by one coefficient.
constexpr double coefficient = 0.45;
constexpr Seconds table_launch{100e-6};
constexpr Bytes table_chunk{4 * MiB};
struct TableRow {
  Bandwidth nic{0};
  Seconds chunk_preparation{0};
  Seconds round_trip{0};
};
constexpr TableRow hopper_row{Bandwidth(55.56e9), Seconds(13.34e-6), Seconds(68.89e-6)};
constexpr TableRow blackwell_row{Bandwidth(111.12e9), Seconds(4.45e-6), Seconds(46.67e-6)};
constexpr TableRow other_row{Bandwidth(111.12e9), Seconds(13.34e-6), Seconds(68.89e-6)};

XlaSolConfig scaled(const TableRow& row) {
  return {table_launch * coefficient, row.nic * coefficient, row.chunk_preparation * coefficient,
          row.round_trip * coefficient, table_chunk};
}

Seconds piece_time(const XlaSolConfig& config, std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  const double chunks = std::ceil(size / static_cast<double>(config.chunk.count()));
  return Seconds(size / config.nic.count() * (1 + header_overhead)) +
         config.chunk_preparation * chunks + config.round_trip;
}

XlaSolRequest request_of(const Collective& collective, const NodeSpread& spread,
                         const CostBreakdown& ours) {
  XlaSolRequest request{collective.kind, collective.payload, spread.members, spread.nodes};
  if (collective.kind == CollectiveKind::collective_permute) {
    const std::vector<LinkLevel> levels = levels_of(ours);
    const bool leaves =
        std::find(levels.begin(), levels.end(), LinkLevel::scale_out) != levels.end();
    request.members = 2;
    request.nodes = leaves ? 2 : 1;
  }
  return request;
}

}  // namespace

XlaSolConfig xla_sol_config(const DeviceProfile& device) {
  if (device.name.starts_with("H100 SXM")) return scaled(hopper_row);
  if (device.name.starts_with("B200")) return scaled(blackwell_row);
  return scaled(other_row);
}

Seconds xla_sol_estimate(const XlaSolConfig& config, const XlaSolRequest& request) {
  assert(request.members >= 2 && request.nodes >= 1 && request.nodes <= request.members);
  const std::int64_t members = request.members;
  const std::int64_t per_node = members / request.nodes;
  if (request.kind == CollectiveKind::all_to_all) {
    const auto peers = static_cast<double>(per_node * (request.nodes - 1));
    return config.launch + piece_time(config, request.bytes.count() / (members - 1)) * peers;
  }
  const bool whole = request.kind == CollectiveKind::collective_permute;
  const std::int64_t piece = whole ? request.bytes.count() : request.bytes.count() / members;
  const double rounds = request.kind == CollectiveKind::all_reduce ? 2 : 1;
  const double pieces = static_cast<double>(members - 1) / static_cast<double>(per_node);
  return config.launch + piece_time(config, piece) * (pieces * rounds);
}

CostBreakdown xla_sol_cost(const Placement& placement, const Collective& collective,
                           const CostBreakdown& ours) {
  const Profile& profile = placement.machine().profile;
  const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  if (cluster == nullptr) {
    throw InputError({"", "/machine"},
                     fmt::format("XLA's SOL model is of GPU clusters; {} is none", profile.name));
  }
  if (collective.kind == CollectiveKind::broadcast) {
    throw InputError({"", "/kind"}, "XLA's SOL model has no broadcast");
  }
  const XlaSolConfig config = xla_sol_config(profile.device);
  Seconds slowest{0};
  const auto add = [&](const NodeSpread& spread) {
    const XlaSolRequest request = request_of(collective, spread, ours);
    slowest = std::max(slowest, xla_sol_estimate(config, request));
  };
  if (collective.axes.empty() && collective.groups.empty()) {
    add({2, 1, 2, 2});  // pairs: the request looks at the links
  } else {
    for (const NodeSpread& spread :
         node_spreads(placement.mesh(), collective, cluster->devices_per_node.value)) {
      add(spread);
    }
  }
  CostBreakdown cost;
  cost.algorithm = "XLA's SOL estimate";
  cost.launch = config.launch;
  cost.transfer = slowest - config.launch;
  cost.links = ours.links;
  cost.memory = ours.memory;
  cost.thread_blocks = ours.thread_blocks;
  return cost;
}

}  // namespace shardsim
