// Reductions by switches between nodes, as InfiniBand's SHARP does them and NCCL's CollNet asks for
// them. Every node has h heads, members with a way out of their own; head j of all k nodes look
// after an h-th of the payload, over a tree of switches of their own (switch_tree.hpp):
//
//   all-reduce      members send a head its h-th, which the head adds up and sends up the tree;
//                   each switch adds up what comes from below; the root's sum goes down to all
//                   heads, which send it to the other members: NCCL's CollNetDirect
//   reduce-scatter  the same; down the tree go only the parts that heads below are to have
//   all-gather      the same backwards: up the tree go parts, down it all of the h-th
//
// chunk by chunk, of 512 KiB of an h-th: whoever passes chunks on does so when it has one as a
// whole. Switches pass packets on; c chunks over a tree of height l come 2 l - 1 chunks late here.
//
// Where every device is a node and each edge of the tree has a way of its own, with x of N ranks
// below an edge of the tree at height l:
//
//   all-reduce      2 l latency + (2 l + c - 1) P / c / bandwidth
//   reduce-scatter, all-gather
//                   2 l latency + (l + c - 1) P / c / bandwidth + the sum over l edges of
//                   x / N P / c / bandwidth
//
// So P goes up a wire and P comes down, for any number of ranks, where a ring has 2 (N - 1) / N P
// each way: 2 (N - 1) / N times as fast for large payloads, twice in the limit. A reduce-scatter
// and an all-gather take as long as an all-reduce, where a ring takes half of its.
//
// Example: fat-tree(8x4), all-reduce of 1 GiB: l = 2, 2048 chunks, 4 latencies and 2051 times 512
// KiB; a ring has 62 steps of 32 MiB, 1.94 GiB.
//
// Graham and others, "Scalable hierarchical aggregation protocol (SHArP)", COM-HPC 2016; Graham and
// others, "SHARP streaming-aggregation hardware design and evaluation", ISC High Performance 2020.
// That a switch adds up as fast as its wires bring is what the latter measured, to 5 %.
#pragma once

#include "sim/network/placed_group.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

// Groups of two nodes at least, with as many heads in every node as in the one that has fewest. For
// all but all-reduces every member is a head. Throws std::range_error where no switch joins heads.
[[nodiscard]] Schedule collnet_all_gather(const NetworkGraph& graph,
                                          const std::vector<PlacedGroup>& groups);
[[nodiscard]] Schedule collnet_reduce_scatter(const NetworkGraph& graph,
                                              const std::vector<PlacedGroup>& groups);
[[nodiscard]] Schedule collnet_all_reduce(const NetworkGraph& graph,
                                          const std::vector<PlacedGroup>& groups);

// Over a fat tree of which the group is all devices: `below` says, from the leaf switches up, how
// many devices are below a switch of each tier. `wire`: one hop.
[[nodiscard]] FlowTime collnet_all_reduce_time(const std::vector<std::int64_t>& below,
                                               Bytes payload, const Way& wire);
// Of an all-gather and of a reduce-scatter.
[[nodiscard]] FlowTime collnet_half_time(const std::vector<std::int64_t>& below, Bytes payload,
                                         const Way& wire);

}  // namespace shardsim::network
