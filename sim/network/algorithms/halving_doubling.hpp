// Recursive halving and doubling: partners at distances that are powers of two.
//
//   reduce-scatter  partners at N/2, N/4, ..., 1 exchange half of what is left: P/2, P/4, ... P/N
//   all-gather      the same backwards: P/N, ... P/2
//   all-reduce      one, then the other: 2 log2(N) steps
//
//   time = sum over k = 1 ... log2(N) of latency + P / 2^k / bandwidth, twice for an all-reduce
//
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 19(1), 2005. The number of ranks is a power of two.
#pragma once

#include "sim/network/phases.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

[[nodiscard]] bool can_halve(std::int64_t ranks);
[[nodiscard]] Lanes halving_reduce_scatter(std::int64_t ranks);
[[nodiscard]] Lanes doubling_all_gather(std::int64_t ranks);
[[nodiscard]] Lanes halving_doubling_all_reduce(std::int64_t ranks);

// Of one half, where every way is as long; an all-reduce takes twice as long.
[[nodiscard]] FlowTime halving_time(std::int64_t ranks, Bytes payload, const Way& way);

}  // namespace shardsim::network
