#include "sim/network_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.hpp"
#include "base/index.hpp"
#include "sim/network/algorithms/pairwise.hpp"
#include "sim/network/algorithms/permute.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim {
namespace {

using Groups = std::vector<std::vector<NodeId>>;

struct Expansion {
  std::string algorithm;
  Groups groups;
  network::Phases phases;
};

Groups groups_of(const Mesh& mesh, const Collective& collective) {
  Groups groups;
  for (const auto& group :
       collective.groups.empty() ? mesh.groups(collective.axes) : collective.groups) {
    groups.emplace_back(group.begin(), group.end());
  }
  return groups;
}

// All devices as one group: a permute's pairs need not stay in groups.
Expansion permute(const Mesh& mesh, const Collective& collective) {
  std::vector<NodeId> devices;
  for (NodeId device = 0; device < mesh.devices(); ++device) devices.push_back(device);
  return {"direct",
          {devices},
          network::permute(mesh.devices(), permute_pairs(mesh, collective), collective.payload)};
}

Expansion expand(const Mesh& mesh, const Collective& collective) {
  if (collective.kind == CollectiveKind::collective_permute) return permute(mesh, collective);
  Groups groups = groups_of(mesh, collective);
  const auto ranks = static_cast<std::int64_t>(groups.front().size());
  switch (collective.kind) {
    case CollectiveKind::all_gather:
      return {"ring", std::move(groups), network::ring_all_gather(ranks, collective.payload)};
    case CollectiveKind::reduce_scatter:
      return {"ring", std::move(groups), network::ring_reduce_scatter(ranks, collective.payload)};
    case CollectiveKind::all_to_all:
      return {"pairwise", std::move(groups),
              network::pairwise_all_to_all(ranks, collective.payload)};
    default:
      return {"ring", std::move(groups), network::ring_all_reduce(ranks, collective.payload)};
  }
}

network::FlowTime latency_of(const network::Traffic& traffic) {
  network::FlowTime sum{0};
  for (const network::TrafficPhase& phase : traffic.phases) {
    network::FlowTime longest{0};
    for (const network::Send& send : phase.sends) longest = std::max(longest, send.latency);
    sum += phase.steps * longest;
  }
  return sum;
}

}  // namespace

CostBreakdown network_cost(const Placement& placement, const Collective& collective,
                           Folding folding) {
  const auto& network = std::get<NetworkDescription>(placement.machine().profile.network);
  if (collective.payload == Bytes(0)) return {};
  const Expansion expansion = expand(placement.mesh(), collective);
  Router router(*placement.graph(), route_choice(network.kind));
  CostBreakdown cost;
  cost.algorithm = expansion.algorithm;
  try {
    network::Traffic traffic =
        network::traffic_of(*placement.graph(), router, expansion.groups, expansion.phases);
    if (traffic.crossings.empty()) return {};
    if (folding == Folding::folded) traffic = network::fold(traffic);
    const network::FlowTime latency = latency_of(traffic);
    cost.latency = network::to_seconds(latency);
    cost.transfer = network::to_seconds(network::run(traffic) - latency);
  } catch (const std::range_error& error) {
    throw InputError({"", "/machine"}, error.what());
  }
  cost.links = {LinkLevel::network};
  return cost;
}

}  // namespace shardsim
