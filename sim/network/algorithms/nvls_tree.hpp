// In-switch reduction in every node, trees of messages between nodes: NCCL's NVLSTree. Of every
// node h heads look after an h-th of the payload each:
//
//   the switch of a node adds up its members' arrays and hands every head its h-th; heads of one
//   number add up along two trees over the nodes (tree.hpp, double_tree), half of the h-th each,
//   and get the sum back; every head gives its h-th to the switch, which hands all of it to all
//   members
//
// chunk by chunk, 512 KiB of every half.
//
// Time, no less than what the busiest links carry:
//   a head's, in its node      (P + P / h) / bandwidth each way
//   a head's out of its node   P / h / bandwidth over two nodes, each of which is leaf of one tree
//                              and root of the other; else 2 P / h / bandwidth, of who is inside
//                              one tree, with a parent and two children, and leaf of the other; of
//                              three nodes, where nobody has two children, 3/2 P / h / bandwidth
//
// There is no closed form of all of it. Halves of trees and what comes down in between meet on the
// members' links, and a chunk's share of them depends on which chunks of the other tree are under
// way just then, which follows from the depths of both trees and all latencies.
//
// Example: 4 nodes of 8 with NICs of 50 GB/s and 450 GB/s to the switch, 8 GB: 9 GB in 20 ms in the
// node, 2 GB in 40 ms out of every head. A ring takes 2 * 31 / 32 * 8 GB / 8 of a NIC: 38.8 ms.
//
// In a node: in_switch.hpp. NVIDIA/nccl src/device/all_reduce.h (RunAlgo of NVLS_TREE) and
// src/graph/connect.cc (connectNvls), release 2.30.7.
#pragma once

#include "sim/network/placed_group.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

// Groups of two nodes at least, all with a hub, with as many heads as in the node that has fewest.
[[nodiscard]] Schedule nvls_tree_all_reduce(const NetworkGraph& graph,
                                            const std::vector<PlacedGroup>& groups);

// The larger of the two above, of wires without latency.
[[nodiscard]] FlowTime nvls_tree_bound(std::int64_t nodes, std::int64_t heads, Bytes payload,
                                       const Way& inside, const Way& across);

}  // namespace shardsim::network
