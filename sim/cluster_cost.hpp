// Collectives on a cluster: nodes of devices on a fabric, NICs between nodes.
//
// Of a group of n members on k nodes, with m members on the node that has fewest of them, and the
// wire bytes of a ring, B = wire_bytes_per_device:
//
//   k == 1  ring in the node                       B / scale_up           n - 1 steps
//   k > 1   m rings over all n members, each       B / (w * way out)      k steps across nodes and
//           carrying 1/m of the payload and        and, if a node has     n - k - 1 inside, or
//           leaving every node by w ways           several members,       k - 1 across when every
//                                                  B / scale_up:          member has a node alone
//                                                  the larger
//
// The ways out of a node (hardware_profiles/machine.hpp) are its NICs, at most one per device. All
// groups of a collective run at once and share them: of p ways of a node where a devices are at
// work, m members have w = m min(a, p) / a; with a NIC per device w = m. Direct links (not
// NVSwitch) count as far as they end at members: bandwidth_inside.
//
// An all-reduce is a reduce-scatter and an all-gather: B counts both, the steps double. An
// all-to-all goes pairwise: each member sends P/n to every other, over its NIC or inside its node,
// both at once; a step per peer. A permute sends P in one step.
//
// Example: all-gather of 1 GiB over 16 devices of 2 nodes of 8, NICs of 50 GB/s, NVLink 450 GB/s:
//   B = 15/16 GiB; across 1.007e9 / (8 * 50e9) = 2.52 ms, inside 1.007e9 / 450e9 = 2.24 ms: 2.52 ms
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "sim/collective_cost.hpp"

namespace shardsim {

// How the members of a group are spread over nodes.
struct NodeSpread {
  std::int64_t members = 1;
  std::int64_t nodes = 1;
  std::int64_t fewest = 1;  // members on the node that has fewest, but some
  std::int64_t most = 1;
  friend auto operator<=>(const NodeSpread&, const NodeSpread&) = default;
};

// The distinct spreads of the groups, ordered. Cost: O(axes) where the borders of nodes and of the
// axes' digits nest, so that all groups are alike; O(devices) otherwise.
[[nodiscard]] std::vector<NodeSpread> node_spreads(const Mesh& mesh, const Collective& collective,
                                                   std::int64_t devices_per_node);

[[nodiscard]] CostBreakdown cluster_cost(const Placement& placement, const Collective& collective);

}  // namespace shardsim
