// Ring algorithms: every rank sends to the next, N - 1 times.
//
//   all-gather      each rank's part goes round: N - 1 steps of P / N
//   reduce-scatter  the same the other way: parts are added up on their way to their owner
//   all-reduce      a reduce-scatter, then an all-gather: 2 (N - 1) steps
//
//   time = (N - 1) (latency + P / (k N) / bandwidth), twice that for an all-reduce
//
// Several rings share the payload, all at once: ring j goes in strides of its own, from rank r to
// rank r + stride, and carries a k-th of every part. Strides 1 and N - 1 are one ring both ways.
//
// Example: an all-gather of 1 GiB over 8 ranks: 7 steps of 128 MiB; both ways, 7 steps of 64 MiB.
//
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 69(2), 2009. A part is P / N rounded up to whole bytes.
#pragma once

#include "sim/network/phases.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

using Strides = std::vector<std::int64_t>;  // below N, without a divisor in common with it

[[nodiscard]] Strides both_ways(std::int64_t ranks);
// Of every ring that goes in strides: on a full mesh no two have a link in common.
[[nodiscard]] Strides all_strides(std::int64_t ranks);

// No lanes for a single rank.
[[nodiscard]] Lanes ring_all_gather(std::int64_t ranks, const Strides& strides = {1});
[[nodiscard]] Lanes ring_reduce_scatter(std::int64_t ranks, const Strides& strides = {1});
[[nodiscard]] Lanes ring_all_reduce(std::int64_t ranks, const Strides& strides = {1});

// Of an all-gather and of a reduce-scatter; an all-reduce takes twice as long.
[[nodiscard]] FlowTime ring_time(std::int64_t ranks, std::int64_t rings, Bytes payload,
                                 const Way& way);

}  // namespace shardsim::network
