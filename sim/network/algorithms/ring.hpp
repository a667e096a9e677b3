// Ring algorithms: every rank sends to the next, N - 1 times.
//
//   all-gather      each rank's part goes round: N - 1 steps of P / N
//   reduce-scatter  the same the other way: parts are added up on their way to their owner
//   all-reduce      a reduce-scatter, then an all-gather: 2 (N - 1) steps
//
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 69(2), 2009. A part is P / N rounded up to whole bytes.
#pragma once

#include "sim/network/phases.hpp"

namespace shardsim::network {

// `payload`: the whole array. No phases for a single rank.
[[nodiscard]] Phases ring_all_gather(std::int64_t ranks, Bytes payload);
[[nodiscard]] Phases ring_reduce_scatter(std::int64_t ranks, Bytes payload);
[[nodiscard]] Phases ring_all_reduce(std::int64_t ranks, Bytes payload);

}  // namespace shardsim::network
