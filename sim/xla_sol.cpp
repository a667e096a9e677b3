#include "sim/xla_sol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.hpp"
#include "sim/cluster_cost.hpp"

namespace shardsim {
namespace {

constexpr double header_overhead = 0.025;
// XLA scales its table by this coefficient.
constexpr double coefficient = 0.45;
constexpr Seconds table_launch = Seconds(100e-6) * coefficient;

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
    const bool leaves =
        std::find(ours.links.begin(), ours.links.end(), LinkLevel::scale_out) != ours.links.end();
    request.members = 2;
    request.nodes = leaves ? 2 : 1;
  }
  return request;
}

}  // namespace

XlaSolConfig xla_sol_config(const DeviceProfile& device) {
  const auto scaled = [](double nic, double preparation, double round_trip) {
    return XlaSolConfig{table_launch, Bandwidth(nic * coefficient),
                        Seconds(preparation * coefficient), Seconds(round_trip * coefficient),
                        Bytes(4 * MiB)};
  };
  if (device.name.starts_with("H100 SXM")) return scaled(55.56e9, 13.34e-6, 68.89e-6);
  if (device.name.starts_with("B200")) return scaled(111.12e9, 4.45e-6, 46.67e-6);
  return scaled(111.12e9, 13.34e-6, 68.89e-6);
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
                           CostBreakdown ours) {
  const Profile& profile = placement.machine().profile;
  const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  if (cluster == nullptr) {
    throw InputError({"", "/machine"},
                     fmt::format("XLA's SOL model is of GPU clusters; {} is none", profile.name));
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
  ours.algorithm = "XLA's SOL estimate";
  ours.launch = config.launch;
  ours.latency = Seconds{0};
  ours.transfer = slowest - config.launch;
  return ours;
}

}  // namespace shardsim
