#include "sim/cluster_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace shardsim {
namespace {

NodeSpread spread_of(const std::vector<std::int64_t>& group, std::int64_t devices_per_node) {
  std::map<std::int64_t, std::int64_t> members;  // by node
  for (std::int64_t device : group) ++members[device / devices_per_node];
  NodeSpread spread{static_cast<std::int64_t>(group.size()),
                    static_cast<std::int64_t>(members.size()), members.begin()->second, 0};
  for (const auto& [node, count] : members) {
    spread.fewest = std::min(spread.fewest, count);
    spread.most = std::max(spread.most, count);
  }
  return spread;
}

// The spread that all groups have when every part of an axis is a digit of the device number that
// lies within a node, steps over whole nodes, or is cut by the nodes into equal runs. Then a group
// is a translation of any other by a distance that moves no border.
std::optional<NodeSpread> nested_spread(const Mesh& mesh, const std::vector<AxisRef>& parts,
                                        std::int64_t devices_per_node) {
  NodeSpread spread{Mesh::size_of(parts), 1, 1, 1};
  for (const AxisRef& part : parts) {
    const auto axis = static_cast<std::size_t>(part.axis);
    std::int64_t stride = mesh.axes()[axis].size / (part.pre_size * part.size);
    for (std::size_t i = axis + 1; i < mesh.axes().size(); ++i) stride *= mesh.axes()[i].size;
    const std::int64_t extent = stride * part.size;
    if (devices_per_node % extent == 0) continue;
    if (stride % devices_per_node == 0) {
      spread.nodes *= part.size;
    } else if (devices_per_node % stride == 0 && extent % devices_per_node == 0) {
      spread.nodes *= extent / devices_per_node;
    } else {
      return std::nullopt;
    }
  }
  spread.fewest = spread.most = spread.members / spread.nodes;
  return spread;
}

Seconds time_of(double bytes, const LinkProfile& link) {
  return Seconds(bytes / (link.bandwidth.value.count() * link.efficiency.value));
}

CostBreakdown ring_cost(const ClusterProfile& cluster, const NodeSpread& spread,
                        const Collective& collective) {
  const auto wire = static_cast<double>(
      wire_bytes_per_device(collective.kind, spread.members, collective.payload).count());
  const double rounds = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  const double n = static_cast<double>(spread.members);
  const double k = static_cast<double>(spread.nodes);

  CostBreakdown cost;
  if (spread.nodes == 1) {
    cost.algorithm = "ring in the node";
    cost.latency = cluster.scale_up.latency.value * (rounds * (n - 1));
    cost.transfer = time_of(wire, cluster.scale_up);
    cost.links = {LinkLevel::scale_up};
    return cost;
  }
  const bool alone = spread.most == 1;  // every member has a node to itself
  // A piece makes every hop of the ring but one; the last to arrive is one that skips a short hop.
  const double across = alone ? k - 1 : k;
  const double inside = alone ? 0 : n - k - 1;
  cost.latency = cluster.scale_out.latency.value * (rounds * across) +
                 cluster.scale_up.latency.value * (rounds * inside);
  cost.transfer = time_of(wire / static_cast<double>(spread.fewest), cluster.scale_out);
  cost.links = {LinkLevel::scale_out};
  if (!alone) {
    cost.transfer = std::max(cost.transfer, time_of(wire, cluster.scale_up));
    cost.links = {LinkLevel::scale_up, LinkLevel::scale_out};
  }
  cost.algorithm = fmt::format("ring over {} nodes, {} NIC{} each", spread.nodes, spread.fewest,
                               spread.fewest == 1 ? "" : "s");
  return cost;
}

CostBreakdown all_to_all_cost(const ClusterProfile& cluster, const NodeSpread& spread,
                              const Collective& collective) {
  const double piece =
      static_cast<double>(collective.payload.count()) / static_cast<double>(spread.members);
  const auto inside = static_cast<double>(spread.most - 1);
  const auto across = spread.nodes == 1 ? 0.0 : static_cast<double>(spread.members - spread.fewest);
  const auto peers = static_cast<double>(spread.members - 1);

  CostBreakdown cost;
  cost.algorithm = "pairwise";
  cost.latency =
      cluster.scale_out.latency.value * across + cluster.scale_up.latency.value * (peers - across);
  cost.transfer = std::max(time_of(piece * inside, cluster.scale_up),
                           time_of(piece * across, cluster.scale_out));
  if (inside > 0) cost.links.push_back(LinkLevel::scale_up);
  if (across > 0) cost.links.push_back(LinkLevel::scale_out);
  return cost;
}

CostBreakdown permute_cost(const ClusterProfile& cluster, const Mesh& mesh,
                           const Collective& collective) {
  // Messages that one device sends or receives, inside its node and across.
  std::map<std::int64_t, std::int64_t> sent[2];
  std::map<std::int64_t, std::int64_t> received[2];
  std::int64_t busiest[2] = {0, 0};
  for (const auto& [source, target] : permute_pairs(mesh, collective)) {
    if (source == target) continue;
    const std::int64_t per_node = cluster.devices_per_node.value;
    const int level = source / per_node == target / per_node ? 0 : 1;
    busiest[level] = std::max({busiest[level], ++sent[level][source], ++received[level][target]});
  }
  const auto payload = static_cast<double>(collective.payload.count());
  CostBreakdown cost;
  cost.algorithm = "permute";
  for (const int level : {0, 1}) {
    if (busiest[level] == 0) continue;
    const LinkProfile& link = level == 0 ? cluster.scale_up : cluster.scale_out;
    cost.latency = std::max(cost.latency, link.latency.value);
    cost.transfer =
        std::max(cost.transfer, time_of(payload * static_cast<double>(busiest[level]), link));
    cost.links.push_back(level == 0 ? LinkLevel::scale_up : LinkLevel::scale_out);
  }
  return cost;
}

}  // namespace

std::vector<NodeSpread> node_spreads(const Mesh& mesh, const Collective& collective,
                                     std::int64_t devices_per_node) {
  if (collective.groups.empty()) {
    const auto all_alike = nested_spread(mesh, collective.axes, devices_per_node);
    if (all_alike) return {*all_alike};
  }
  std::vector<NodeSpread> spreads;
  const auto& groups = collective.groups.empty() ? mesh.groups(collective.axes) : collective.groups;
  for (const auto& group : groups) spreads.push_back(spread_of(group, devices_per_node));
  std::sort(spreads.begin(), spreads.end());
  spreads.erase(std::unique(spreads.begin(), spreads.end()), spreads.end());
  return spreads;
}

CostBreakdown cluster_cost(const Placement& placement, const Collective& collective) {
  const auto& cluster = std::get<ClusterProfile>(placement.machine().profile.network);
  if (collective.kind == CollectiveKind::collective_permute) {
    return permute_cost(cluster, placement.mesh(), collective);
  }
  CostBreakdown slowest;
  for (const NodeSpread& spread :
       node_spreads(placement.mesh(), collective, cluster.devices_per_node.value)) {
    if (spread.members == 1) continue;
    CostBreakdown cost = collective.kind == CollectiveKind::all_to_all
                             ? all_to_all_cost(cluster, spread, collective)
                             : ring_cost(cluster, spread, collective);
    if (slowest.links.empty() || slowest.total() < cost.total()) slowest = std::move(cost);
  }
  return slowest;
}

}  // namespace shardsim
