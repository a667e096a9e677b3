// PAT, parallel aggregated trees: every rank's part goes down a binomial tree of its own, all trees
// at once, and what goes the same way in the same step goes as one message. Far steps come first,
// when there is little to send.
//
//   all-gather      distances d = 2^(m-1), ..., 2, 1 with 2^m >= N > 2^(m-1): rank r sends to
//                   r + d its own part and those from r - 2d, r - 4d, ...: ceil((N - d) / 2d) parts
//   reduce-scatter  the same backwards, to r - d
//
//   time = sum over d of latency + ceil((N - d) / 2d) P / N / bandwidth
//
// Example: N = 6, d = 4, 2, 1: 1, 1 and 3 parts, which are the five that every rank lacks.
//
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
// arXiv:2506.20252, 2025; here with buffers that hold what a step sends, where NCCL's, once they
// are full, fall back to more steps.
#pragma once

#include "sim/network/phases.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

[[nodiscard]] Lanes pat_all_gather(std::int64_t ranks);
[[nodiscard]] Lanes pat_reduce_scatter(std::int64_t ranks);

// Of either, where every way is as long.
[[nodiscard]] FlowTime pat_time(std::int64_t ranks, Bytes payload, const Way& way);

}  // namespace shardsim::network
