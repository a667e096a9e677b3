// Rings on machines that have nodes, as NCCL and RCCL lay them: nodes in sequence, and as many
// rings at once as it takes to use every way out of a node, or every link inside it.
//
//   one node, behind switches    one ring, in the order of the group
//   one node, linked in pairs    rings that use each link alike, both ways (rings_of_full_mesh)
//   one node, a cube mesh        rings of which no two share a wire (rings_of_wires)
//   several nodes                m rings, m the members on the node with fewest: ring r comes into
//                                a node at one member, leaves it from another, each by others
//
// In a node ring r takes the members in order, beginning at r. Where they are linked in pairs and
// even in number it takes the zigzag r, r + 1, r - 1, r + 2, ... r + m / 2: no two rings go from
// one member to the same next one. In every other node rings go the other way round, so that they
// leave a node by the NIC of the same number by which they come into the next: they stay on their
// rails.
//
//   time = (N - 1) (latency + P / (k N) / bandwidth)         for k rings that meet on no link
//
// Example: 2 nodes of 4, ring 1: 1 2 3 0 of the first node, 0 3 2 1 of the second; in pairs 1 2 0 3
// of the first and 3 0 2 1 of the second.
//
// Zigzags are Walecki's (Alspach, "The wonderful Walecki construction", Bulletin of the Institute
// of Combinatorics and its Applications 52, 2008). NCCL, src/graph/connect.cc (read 2026-11),
// exchanges rings of odd nodes so that they stay on their rails.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/phases.hpp"

namespace shardsim::network {

using Ring = std::vector<std::int32_t>;  // who comes after whom; behind the last the first

// Of n ranks. Even n: 2 (n - 1) rings, of which two cross each link in each direction; odd n: n -
// 1, of which one does. Of two ranks one ring.
[[nodiscard]] std::vector<Ring> rings_of_full_mesh(std::int32_t ranks);

// `wires[a][b]` join a and b: as many rings without a common wire as can be found, each both ways;
// one ring in order where there are none.
[[nodiscard]] std::vector<Ring> rings_of_wires(const std::vector<std::vector<int>>& wires);

// Over the members of several nodes, by node.
[[nodiscard]] std::vector<Ring> rings_over_nodes(const std::vector<Ring>& nodes,
                                                 bool linked_in_pairs);

// The rings of one group.
struct GroupRings {
  std::int64_t ranks = 1;
  std::vector<Ring> rings;
};
// All groups at once, by number of the device: N - 1 steps for a round, of which an all-reduce has
// two. `devices` are all there are.
[[nodiscard]] Lanes around_rings(const std::vector<GroupRings>& groups, std::int64_t devices,
                                 std::int64_t rounds);

}  // namespace shardsim::network
