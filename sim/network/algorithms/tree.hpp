// Trees of ranks in which a payload goes up to the root, added up on its way, and down again, chunk
// by chunk: a rank passes a chunk on as soon as it has it from all of its children, or from its
// parent. Broadcast is the way down, reduce the way up, all-reduce both.
//
//   chain          rank r under rank r - 1
//   binomial tree  rank r under the rank without r's lowest set bit; it has log2(N) children, to
//                  which it sends one after the other, those with most below them first, whole
//                  payloads
//   double tree    two trees, each with half of the payload, in which whoever is inside one is at
//                  most a leaf of the other, but for one rank: NCCL's
//
// Time of c chunks over a tree of height h, where every edge has a way of its own:
//   broadcast, reduce  h latency + (h + c - 1) P / c / bandwidth
//   all-reduce         2 h latency + (2 h + c - 1) P / c / bandwidth
//   binomial tree      ceil(log2 N) (latency + P / bandwidth), for an all-reduce of a power of two
//                      of ranks twice that
// With two trees P / 2 for P, where they have no way in common.
//
// Example: 8 ranks in a double tree: height 3; 1 GiB, 512 MiB a tree, 1024 chunks: 6 latencies and
// 1029 times 512 KiB.
//
// Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// Parallel Computing 35(12), 2009. The trees are those of NCCL (src/graph/trees.cc): in the first
// leaves are odd ranks, the second is its mirror image, or, for an odd number of ranks, the first
// with everyone one further on.
#pragma once

#include "sim/network/schedule.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

// The parent of every rank; the root has nobody.
using Tree = std::vector<std::int32_t>;

[[nodiscard]] Tree chain(std::int64_t ranks);
[[nodiscard]] Tree binary_tree(std::int64_t ranks);
[[nodiscard]] std::vector<Tree> double_tree(std::int64_t ranks);
[[nodiscard]] std::int64_t height(const Tree& tree);
// Ranks by how far they are from the root, those of one distance by number.
[[nodiscard]] std::vector<std::int32_t> from_the_root(const Tree& tree);

// How much of a payload goes through one tree at once: a slice of NCCL's buffers, of which there
// are NCCL_STEPS = 8 in 4 MiB (NCCL_BUFFSIZE's default; src/include/device.h and src/init.cc).
inline constexpr Bytes slice{512 * KiB};

// Every tree has as large a share of the payload. No streams for a single rank.
[[nodiscard]] Schedule tree_broadcast(const std::vector<Tree>& trees, Bytes chunk = slice);
[[nodiscard]] Schedule tree_all_reduce(const std::vector<Tree>& trees, Bytes chunk = slice);
[[nodiscard]] Lanes binomial_broadcast(std::int64_t ranks);
[[nodiscard]] Lanes binomial_all_reduce(std::int64_t ranks);

// `levels`: the height for a broadcast, twice the height for an all-reduce.
[[nodiscard]] FlowTime tree_time(std::int64_t levels, std::int64_t trees, Bytes payload,
                                 const Way& way, Bytes chunk = slice);
// Of a broadcast; an all-reduce of a power of two of ranks takes twice as long.
[[nodiscard]] FlowTime binomial_time(std::int64_t ranks, Bytes payload, const Way& way);

}  // namespace shardsim::network
