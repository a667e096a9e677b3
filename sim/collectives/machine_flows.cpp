#include "sim/collectives/machine_flows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/index.hpp"
#include "sim/collectives/permute_pairs.hpp"
#include "sim/collectives/torus_lanes.hpp"
#include "sim/collectives/torus_routes.hpp"
#include "sim/nccl/node_spread.hpp"
#include "sim/network/algorithms/node_rings.hpp"

namespace shardsim {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

Groups groups_of(const Placement& placement, const Collective& collective) {
  return collective.groups.empty() ? placement.mesh().groups(collective.axes) : collective.groups;
}

// The dimensions that a group fills, in its order; none where it leaves out a part of one.
struct Filled {
  network::Shape sizes;
  bool all_close = true;
};

Filled filled_dimensions(const Placement& placement, const std::vector<AxisRef>& axes) {
  std::vector<TorusSpan> spans;
  for (const TorusSpan& span : digits_of(placement, axes)) {
    const bool goes_on = !spans.empty() && spans.back().dimension == span.dimension &&
                         spans.back().stride == span.stride * span.size;
    if (goes_on) {
      spans.back() = {span.dimension, spans.back().size * span.size, span.stride};
    } else {
      spans.push_back(span);
    }
  }
  const TorusShape& torus = *placement.machine().torus;
  const std::vector<std::int64_t> sizes = torus.device_sizes();
  Filled filled;
  for (const TorusSpan& span : spans) {
    const std::size_t dimension = at(span.dimension);
    if (span.size != sizes[dimension]) return {};
    filled.sizes.push_back(span.size);
    filled.all_close = filled.all_close && dimension < torus.wraps.size() && torus.wraps[dimension];
  }
  return filled;
}

std::vector<network::Ring> rings_in_node(Fabric fabric, const network::Ring& members,
                                         std::int64_t devices_per_node) {
  std::vector<network::Ring> rings;
  if (fabric == Fabric::cube_mesh) {
    std::vector<std::vector<int>> wires(members.size(), std::vector<int>(members.size()));
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = 0; b < members.size(); ++b) {
        wires[a][b] =
            cube_mesh_links[at(members[a] % devices_per_node)][at(members[b] % devices_per_node)];
      }
    }
    rings = network::rings_of_wires(wires);
  } else if (is_direct(fabric)) {
    rings = network::rings_of_full_mesh(static_cast<std::int32_t>(members.size()));
  } else {
    return {members};
  }
  for (network::Ring& ring : rings) {
    for (std::int32_t& place : ring) place = members[at(place)];
  }
  return rings;
}

std::string collnet_lacks(const ClusterProfile& cluster, CollectiveKind kind,
                          const std::vector<NodeSpread>& spreads) {
  const bool has_nodes = std::all_of(spreads.begin(), spreads.end(),
                                     [](const NodeSpread& spread) { return spread.nodes > 1; });
  if (!has_nodes) return "groups over several nodes";
  if (!cluster.scale_out->reduction) {
    return "a network that reduces: \"reduction\" in the profile's scale_out";
  }
  if (kind == CollectiveKind::all_reduce) return "";
  const ReductionProfile& reduction = *cluster.scale_out->reduction;
  const auto& offered =
      kind == CollectiveKind::all_gather ? reduction.all_gather : reduction.reduce_scatter;
  if (!offered || !offered->value) {
    return fmt::format("a network that does an {}, too: the profile's \"reduction\" has none",
                       name_of(kind));
  }
  if (ways_out(cluster).per_node < cluster.devices_per_node.value) return "a NIC for every device";
  return "";
}

std::string nvls_tree_lacks(const ClusterProfile& cluster, const std::vector<NodeSpread>& spreads) {
  constexpr double hopper = 9.0;
  const bool reduces = cluster.scale_up.fabric.value == Fabric::nvswitch && cluster.nccl &&
                       cluster.nccl->compute_capability.value >= hopper;
  if (!reduces) return "NVSwitch and GPUs of Hopper or later";
  const bool is_spread = std::all_of(spreads.begin(), spreads.end(), [](const NodeSpread& spread) {
    return spread.nodes > 1 && spread.fewest > 1;
  });
  return is_spread ? "" : "groups with several devices on each of several nodes";
}

}  // namespace

std::vector<NodeId> nodes_of_positions(const Placement& placement) {
  std::vector<NodeId> nodes(at(placement.mesh().devices()));
  std::iota(nodes.begin(), nodes.end(), 0);
  if (placement.machine().torus) {
    const TorusRoutes routes(placement);
    for (NodeId& node : nodes) node = static_cast<NodeId>(routes.device(node));
  }
  return nodes;
}

network::GroupOnNetwork group_on_machine(const Placement& placement, const Collective& collective) {
  network::GroupOnNetwork group;
  group.kind = NetworkKind::graph;
  if (const auto* cluster = std::get_if<ClusterProfile>(&placement.machine().profile.network)) {
    const std::vector<NodeSpread> spreads =
        node_spreads(placement.mesh(), collective, cluster->devices_per_node.value);
    group.collnet_lacks = collnet_lacks(*cluster, collective.kind, spreads);
    group.nvls_tree_lacks = nvls_tree_lacks(*cluster, spreads);
  } else {
    group.collnet_lacks = group.nvls_tree_lacks = "a network with switches";
  }
  if (!collective.groups.empty()) {
    group.ranks = static_cast<std::int64_t>(collective.groups.front().size());
    return group;
  }
  group.ranks = Mesh::size_of(collective.axes);
  if (placement.machine().torus && collective.kind != CollectiveKind::collective_permute) {
    const Filled filled = filled_dimensions(placement, collective.axes);
    group.kind = NetworkKind::torus;
    group.dimensions = filled.sizes;
    group.wraps = filled.all_close;
  }
  return group;
}

network::Expansion rings_on_cluster(const Placement& placement, const Collective& collective) {
  const auto& cluster = std::get<ClusterProfile>(placement.machine().profile.network);
  const std::int64_t per_node = cluster.devices_per_node.value;
  std::vector<network::GroupRings> groups;
  for (const auto& group : groups_of(placement, collective)) {
    std::map<std::int64_t, network::Ring> by_node;
    for (const std::int64_t device : group) {
      by_node[device / per_node].push_back(static_cast<std::int32_t>(device));
    }
    std::vector<network::Ring> nodes;
    for (auto& [node, members] : by_node) nodes.push_back(std::move(members));
    const Fabric fabric = cluster.scale_up.fabric.value;
    groups.push_back({static_cast<std::int64_t>(group.size()),
                      nodes.size() == 1 ? rings_in_node(fabric, nodes[0], per_node)
                                        : network::rings_over_nodes(nodes, is_direct(fabric))});
  }
  const std::int64_t devices = placement.mesh().devices();
  const std::int64_t rounds = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  return {"ring",
          {devices},
          network::around_rings(groups, devices, rounds),
          /*uses_switch=*/false,
          /*over_all=*/true};
}

std::vector<network::PlacedGroup> placed_on_cluster(
    const ClusterProfile& cluster, const MachineGraph& graph,
    const std::vector<std::vector<NodeId>>& groups) {
  const std::int64_t per_node = cluster.devices_per_node.value;
  std::vector<network::PlacedGroup> placed;
  for (const auto& group : groups) {
    std::map<std::int64_t, network::PlacedNode> by_node;
    std::set<std::int64_t> ways;
    for (const NodeId device : group) {
      network::PlacedNode& node = by_node[device / per_node];
      node.members.push_back(device);
      if (ways.insert(way_of(device, cluster)).second) node.heads.push_back(device);
      if (!graph.nvswitches.empty()) node.hub = graph.nvswitches[at(device / per_node)];
    }
    network::PlacedGroup& nodes = placed.emplace_back();
    for (auto& [number, node] : by_node) nodes.push_back(std::move(node));
  }
  return placed;
}

std::vector<LinkLevel> levels_of(const Placement& placement, const Collective& collective) {
  const Machine& machine = placement.machine();
  std::vector<LinkLevel> levels;
  if (machine.torus) {
    const std::vector<std::int64_t> sizes = machine.torus->device_sizes();
    const bool by_axes = collective.groups.empty() && collective.source_targets.empty();
    const std::vector<Lane> lanes =
        by_axes ? lanes_of(placement, collective.axes) : std::vector<Lane>();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const bool is_used = !by_axes || std::any_of(lanes.begin(), lanes.end(), [&](const Lane& l) {
        return at(l.dimension) == i;
      });
      if (is_used && sizes[i] > 1) levels.push_back(level_of(placement, static_cast<int>(i)));
    }
    return levels;
  }
  const auto& cluster = std::get<ClusterProfile>(machine.profile.network);
  const std::int64_t per_node = cluster.devices_per_node.value;
  bool inside = false;
  bool across = false;
  if (collective.kind == CollectiveKind::collective_permute) {
    for (const auto& [source, target] : permute_pairs(placement.mesh(), collective)) {
      (source / per_node == target / per_node ? inside : across) |= source != target;
    }
  } else {
    for (const NodeSpread& spread : node_spreads(placement.mesh(), collective, per_node)) {
      inside |= spread.most > 1;
      across |= spread.nodes > 1;
    }
  }
  if (inside) levels.push_back(LinkLevel::scale_up);
  if (across) levels.push_back(LinkLevel::scale_out);
  return levels;
}

}  // namespace shardsim
