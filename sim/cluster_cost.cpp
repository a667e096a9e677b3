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

// What a collective makes of a cluster: the rates that its members see.
class ClusterRates {
 public:
  ClusterRates(const ClusterProfile& cluster, std::int64_t busy_per_node)
      : cluster_(cluster), busy_per_node_(busy_per_node) {}

  // Of one member into its node, with `members` of its group there.
  [[nodiscard]] Seconds inside(double bytes, std::int64_t members) const {
    const double rate = bandwidth_inside(cluster_, members).count();
    return Seconds(bytes / (rate * cluster_.scale_up.efficiency.value));
  }
  // Of `members` of a group out of their node, `bytes` all together.
  [[nodiscard]] Seconds across(double bytes, std::int64_t members) const {
    const double rate = ways_of(members) * ways_out(cluster_).bandwidth.count();
    return Seconds(bytes / (rate * cluster_.scale_out->efficiency.value));
  }
  // The ways out that `members` of a group on one node have.
  [[nodiscard]] double ways_of(std::int64_t members) const {
    const std::int64_t ways = std::min(busy_per_node_, ways_out(cluster_).per_node);
    return static_cast<double>(members * ways) / static_cast<double>(busy_per_node_);
  }
  [[nodiscard]] Seconds step_inside() const { return cluster_.scale_up.latency.value; }
  [[nodiscard]] Seconds step_across() const { return cluster_.scale_out->latency.value; }

 private:
  const ClusterProfile& cluster_;
  std::int64_t busy_per_node_;
};

// Devices at work on the busiest node.
std::int64_t busy_per_node(const Machine& machine, const Collective& collective) {
  const std::int64_t per_node =
      std::get<ClusterProfile>(machine.profile.network).devices_per_node.value;
  if (collective.groups.empty()) return std::min(per_node, machine.devices);
  std::map<std::int64_t, std::int64_t> busy;
  std::int64_t most = 1;
  for (const auto& group : collective.groups) {
    for (const std::int64_t device : group) most = std::max(most, ++busy[device / per_node]);
  }
  return most;
}

// "ring over 4 nodes, 8 NICs each": 32 NICs for 8 devices are 4 for each member.
std::string ring_name(const ClusterProfile& cluster, const NodeSpread& spread, double ways) {
  const std::int64_t nics_per_way =
      cluster.scale_out->nics_per_node.value / ways_out(cluster).per_node;
  const double nics = ways * static_cast<double>(nics_per_way);
  return fmt::format("ring over {} nodes, {} NIC{} each", spread.nodes, nics, nics == 1 ? "" : "s");
}

CostBreakdown ring_cost(const ClusterProfile& cluster, const ClusterRates& rates,
                        const NodeSpread& spread, const Collective& collective) {
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
  cost.algorithm = ring_name(cluster, spread, rates.ways_of(spread.fewest));
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

CostBreakdown permute_cost(const ClusterProfile& cluster, const Mesh& mesh,
                           const Collective& collective) {
  // Messages that one device sends or receives inside its node, a way out across.
  std::map<std::int64_t, std::int64_t> sent[2];
  std::map<std::int64_t, std::int64_t> received[2];
  std::int64_t busiest[2] = {0, 0};
  const std::int64_t per_node = cluster.devices_per_node.value;
  for (const auto& [source, target] : permute_pairs(mesh, collective)) {
    if (source == target) continue;
    const bool leaves = source / per_node != target / per_node;
    const int level = leaves ? 1 : 0;
    const std::int64_t from = leaves ? way_of(source, cluster) : source;
    const std::int64_t to = leaves ? way_of(target, cluster) : target;
    busiest[level] = std::max({busiest[level], ++sent[level][from], ++received[level][to]});
  }
  const auto payload = static_cast<double>(collective.payload.count());
  const ClusterRates rates(cluster, /*busy_per_node=*/1);  // shared ways are counted above
  CostBreakdown cost;
  cost.algorithm = "permute";
  if (busiest[0] > 0) {
    cost.latency = rates.step_inside();
    cost.transfer = rates.inside(payload * static_cast<double>(busiest[0]), /*members=*/2);
    cost.links.push_back(LinkLevel::scale_up);
  }
  if (busiest[1] > 0) {
    const double bytes = payload * static_cast<double>(busiest[1]);
    cost.latency = std::max(cost.latency, rates.step_across());
    cost.transfer = std::max(cost.transfer, rates.across(bytes, /*members=*/1));
    cost.links.push_back(LinkLevel::scale_out);
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
  const ClusterRates rates(cluster, busy_per_node(placement.machine(), collective));
  CostBreakdown slowest;
  for (const NodeSpread& spread :
       node_spreads(placement.mesh(), collective, cluster.devices_per_node.value)) {
    if (spread.members == 1) continue;
    CostBreakdown cost = collective.kind == CollectiveKind::all_to_all
                             ? all_to_all_cost(rates, spread, collective)
                             : ring_cost(cluster, rates, spread, collective);
    if (slowest.links.empty() || slowest.total() < cost.total()) slowest = std::move(cost);
  }
  return slowest;
}

}  // namespace shardsim
