// A machine as a graph: what its profile says of links, node by node.
//
//   cluster, a node   devices at an NVSwitch or a PCIe switch, half of a step's latency on each
//                     link; or links from device to device (NVLink, Infinity Fabric, the cube mesh)
//   cluster, several  a NIC for every way out of a node (WaysOut), and switches between NICs as the
//                     profile's "switches" have them
//   torus             chips with links in both directions of every dimension, closed and twisted as
//                     the slice is; where a chip is several devices, these beside it
//   graph, in place   as it is given (network_text.hpp)
//
// Bandwidths are the profile's times its efficiency, as the formulas have them
// (sim/collectives/cluster_cost.hpp, sim/collectives/torus_cost.hpp); latencies of a way add up to
// that of one step.
//
// Example, two nodes of DGX H100: 16 devices, 2 NVSwitches, 16 NICs, 8 rail switches and one above.
//
// Where a profile does not say what is between NICs: a switch for every rail, to which the NICs of
// one number lead, and above them one that joins the rails at full bandwidth. Wires up from a
// switch are one trunk: what goes up is spread evenly.
#pragma once

#include <string>
#include <vector>

#include "hardware_profiles/machine.hpp"

namespace shardsim {

struct MachineGraph {
  NetworkGraph graph;
  NodeNames name;
  RouteChoice choice = RouteChoice::first;
  std::vector<std::string> assumptions;  // what the profile does not say, in words
  std::vector<NodeId> nvswitches;        // of a cluster, by node; none where nodes have none
  NodeId first_outside = 0;  // of a cluster: from here on NICs, and switches between its nodes
};

// Devices of a torus are numbered x + size of x * (y + size of y * z), and behind those of all
// chips come the second ones of all chips. Throws InputError for more nodes or links than are
// simulated.
[[nodiscard]] MachineGraph graph_of(const Machine& machine, const Place& place);

}  // namespace shardsim
