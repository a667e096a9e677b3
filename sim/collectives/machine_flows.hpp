// Where the ranks of a collective are on the graph of a profile's machine
// (hardware_profiles/network/machine_graph.hpp), and how its library goes about it there. For
// Fidelity::flows; networks written in place have network/group.hpp.
//
//   cluster  devices as they are numbered; rings by node (network/algorithms/node_rings.hpp),
//            all-to-alls with all messages at once
//   torus    devices where the mesh lies; groups that fill dimensions of the slice go along all of
//            them at once (network/algorithms/torus.hpp)
#pragma once

#include <vector>

#include "hardware_profiles/network/machine_graph.hpp"
#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/placement.hpp"
#include "sim/network/algorithms/by_name.hpp"

namespace shardsim {

// By position of the mesh.
[[nodiscard]] std::vector<NodeId> nodes_of_positions(const Placement& placement);

[[nodiscard]] network::GroupOnNetwork group_on_machine(const Placement& placement,
                                                       const Collective& collective);

// Rings over the nodes of a cluster: of a reduction or an all-gather, with all devices as ranks.
[[nodiscard]] network::Expansion rings_on_cluster(const Placement& placement,
                                                  const Collective& collective);

// Its groups by node, for algorithms over switches: the graph's NVSwitches join members, and of
// those that share a way out of the node the first is a head.
[[nodiscard]] std::vector<network::PlacedGroup> placed_on_cluster(
    const ClusterProfile& cluster, const MachineGraph& graph,
    const std::vector<std::vector<NodeId>>& groups);

// What it shares with collectives that run beside it.
[[nodiscard]] std::vector<LinkLevel> levels_of(const Placement& placement,
                                               const Collective& collective);

}  // namespace shardsim
