#include "sim/cluster_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/nccl/describe.hpp"
#include "sim/nccl_cost.hpp"

namespace shardsim {
namespace {

Region region_of(const NodeSpread& spread) {
  if (spread.nodes == 1) return Region::node;
  return spread.most == 1 ? Region::rail : Region::nodes;
}

CostBreakdown ring_cost(const ClusterRates& rates, const NodeSpread& spread,
                        const Collective& collective) {
  const auto wire = static_cast<double>(
      wire_bytes_per_device(collective.kind, spread.members, collective.payload).count());
  const double rounds = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  const double n = static_cast<double>(spread.members);
  const double k = static_cast<double>(spread.nodes);

  CostBreakdown cost;
  if (spread.nodes == 1) {
    cost.algorithm = "ring in the node";
    cost.latency = rates.step_inside() * (rounds * (n - 1));
    cost.transfer = rates.inside(wire, spread.members);
    cost.links = {LinkLevel::scale_up};
    return cost;
  }
  const bool alone = spread.most == 1;  // every member has a node to itself
  // A piece makes every hop of the ring but one; the last to arrive is one that skips a short hop.
  const double across = alone ? k - 1 : k;
  const double inside = alone ? 0 : n - k - 1;
  cost.latency = rates.step_across() * (rounds * across) + rates.step_inside() * (rounds * inside);
  cost.transfer = rates.across(wire, spread.fewest);
  cost.links = {LinkLevel::scale_out};
  if (!alone) {
    // The slowest node that sends inside may have two members: what lies between is not known.
    const std::int64_t together = std::max<std::int64_t>(spread.fewest, 2);
    cost.transfer = std::max(cost.transfer, rates.inside(wire, together));
    cost.links = {LinkLevel::scale_up, LinkLevel::scale_out};
  }
  const double nics = rates.nics_of(spread.fewest);
  cost.algorithm =
      fmt::format("ring over {} nodes, {} NIC{} each", spread.nodes, nics, nics == 1 ? "" : "s");
  return cost;
}

CostBreakdown all_to_all_cost(const ClusterRates& rates, const NodeSpread& spread,
                              const Collective& collective) {
  const double piece =
      static_cast<double>(collective.payload.count()) / static_cast<double>(spread.members);
  const auto inside = static_cast<double>(spread.most - 1);
  const auto across = spread.nodes == 1 ? 0.0 : static_cast<double>(spread.members - spread.fewest);
  const auto peers = static_cast<double>(spread.members - 1);

  CostBreakdown cost;
  cost.algorithm = "pairwise";
  cost.latency = rates.step_inside() * (peers - across);
  cost.transfer = rates.inside(piece * inside, spread.most);
  if (inside > 0) cost.links.push_back(LinkLevel::scale_up);
  if (across > 0) {
    cost.latency += rates.step_across() * across;
    cost.transfer = std::max(cost.transfer, rates.across(piece * across, 1));
    cost.links.push_back(LinkLevel::scale_out);
  }
  return cost;
}

// Messages that the busiest device sends or receives inside its node, the busiest way out across.
struct BusiestPorts {
  std::int64_t inside = 0;
  std::int64_t across = 0;
};

BusiestPorts busiest_ports(const ClusterProfile& cluster, const Mesh& mesh,
                           const Collective& collective) {
  std::map<std::int64_t, std::int64_t> sent[2];
  std::map<std::int64_t, std::int64_t> received[2];
  BusiestPorts busiest;
  const std::int64_t per_node = cluster.devices_per_node.value;
  for (const auto& [source, target] : permute_pairs(mesh, collective)) {
    if (source == target) continue;
    const bool leaves = source / per_node != target / per_node;
    const int level = leaves ? 1 : 0;
    const std::int64_t from = leaves ? way_of(source, cluster) : source;
    const std::int64_t to = leaves ? way_of(target, cluster) : target;
    std::int64_t& most = leaves ? busiest.across : busiest.inside;
    most = std::max({most, ++sent[level][from], ++received[level][to]});
  }
  return busiest;
}

CostBreakdown permute_cost(const ClusterProfile& cluster, const BusiestPorts& busiest,
                           Bytes message) {
  const auto bytes = static_cast<double>(message.count());
  const ClusterRates rates(cluster, /*busy_per_node=*/1);  // shared ways are counted above
  CostBreakdown cost;
  cost.algorithm = "permute";
  if (busiest.inside > 0) {
    cost.latency = rates.step_inside();
    cost.transfer = rates.inside(bytes * static_cast<double>(busiest.inside), /*members=*/2);
    cost.links.push_back(LinkLevel::scale_up);
  }
  if (busiest.across > 0) {
    const double out = bytes * static_cast<double>(busiest.across);
    cost.latency = std::max(cost.latency, rates.step_across());
    cost.transfer = std::max(cost.transfer, rates.across(out, /*members=*/1));
    cost.links.push_back(LinkLevel::scale_out);
  }
  return cost;
}

CurveKey curve_of(Region region, CollectiveKind kind, const CostBreakdown& cost) {
  // A reduce-scatter sends what an all-gather sends, the other way.
  if (kind == CollectiveKind::reduce_scatter) kind = CollectiveKind::all_gather;
  return {region, std::string(name_of(kind)), cost.protocol.empty() ? "" : cost.algorithm};
}

}  // namespace

ClusterCosts::ClusterCosts(const Placement& placement, const nccl::Forced& forced)
    : placement_(placement),
      cluster_(std::get<ClusterProfile>(placement.machine().profile.network)),
      forced_(forced) {}

CostBreakdown ClusterCosts::cost(const Collective& collective) {
  if (collective.kind == CollectiveKind::collective_permute) {
    const BusiestPorts busiest = busiest_ports(cluster_, placement_.mesh(), collective);
    return corrected(collective.payload, [&](Bytes message) {
      CostBreakdown cost = permute_cost(cluster_, busiest, message);
      const bool leaves = !cost.links.empty() && cost.links.back() == LinkLevel::scale_out;
      cost.launch = placement_.machine().profile.collective_launch.value;
      cost.curve = curve_of(leaves ? Region::nodes : Region::node, collective.kind, cost);
      return cost;
    });
  }
  const ClusterRates rates(cluster_, busy_per_node(placement_.machine(), collective));
  CostBreakdown slowest;
  for (const NodeSpread& spread :
       node_spreads(placement_.mesh(), collective, cluster_.devices_per_node.value)) {
    if (spread.members == 1) continue;
    CostBreakdown cost = corrected(collective.payload, [&](Bytes payload) {
      Collective resized;
      resized.kind = collective.kind;
      resized.payload = payload;
      return group_cost(rates, spread, resized);
    });
    if (slowest.links.empty() || slowest.total() < cost.total()) slowest = std::move(cost);
  }
  return slowest;
}

CostBreakdown ClusterCosts::corrected(Bytes payload, const CostOfSize& cost) const {
  if (placement_.model() != CollectiveModel::simulated) return cost(payload);
  const std::vector<LinkLevel> links = cost(payload).links;
  const bool leaves = !links.empty() && links.back() == LinkLevel::scale_out;
  const double least =
      leaves ? cluster_.scale_out->efficiency.value : cluster_.scale_up.efficiency.value;
  return calibrated_cost(cost, placement_.machine().profile.calibrations, least, payload);
}

CostBreakdown ClusterCosts::group_cost(const ClusterRates& rates, const NodeSpread& spread,
                                       const Collective& collective) {
  const nccl::Communicator* communicator = communicator_of(spread);
  CostBreakdown cost;
  if (communicator != nullptr && nccl_operation(collective.kind)) {
    cost = nccl_cost({rates, spread, *communicator}, collective, forced_);
  } else {
    cost = collective.kind == CollectiveKind::all_to_all
               ? all_to_all_cost(rates, spread, collective)
               : ring_cost(rates, spread, collective);
    cost.launch = placement_.machine().profile.collective_launch.value;
  }
  cost.curve = curve_of(region_of(spread), collective.kind, cost);
  return cost;
}

const nccl::Communicator* ClusterCosts::communicator_of(const NodeSpread& spread) {
  if (!cluster_.nccl) return nullptr;
  const auto [place, is_new] = communicators_.try_emplace(spread);
  if (is_new) place->second = nccl::describe(placement_.machine(), spread, {}, {"", "/machine"});
  return &place->second;
}

}  // namespace shardsim
