// NCCL's time model: latency and bandwidth of every algorithm and protocol of a communicator, the
// table that NCCL prints with NCCL_DEBUG_SUBSYS=TUNING.
//
//   time = latency + bytes / bandwidth       selection.hpp corrects both by size
//
// `bytes` is the full array: of an all-gather what every rank ends with, of a reduce-scatter what
// it begins with. n ranks on k nodes, n/k on each; C channels of speed s (in the node for up to 2
// nodes and for CollNet, else across); steps = 2(n-1) of an all-reduce, n-1 of its halves, n else.
//
// Bandwidth, before it is turned into the array's: limits L and shares are tuner_constants.hpp's
//   Ring      LL min(C s / 2, L)   LL128 min(0.92 C s, C L)   Simple C s
//   Tree      B = min(0.92 C s, C L), then  LL min(B / 3.8, L)  LL128 min(B 7/9 or 120/128, C L)
//             Simple B;  all times 0.85 where a node's tree is a plain chain
//   NVLS, NVLSTree
//             C min(e s_intra (C-1)/C m, s_inter, L), e the switch's efficiency, m = 2 for an
//             all-reduce, whose halves overlap, else (n/k - 1)/(n/k); NVLSTree over 2 nodes
//             has 2 s_inter
//   PAT       0.75 C s
//   CollNetChain  C s     CollNetDirect  C s / ((1 + n/(k C)) / 2), times 0.85 from Hopper on;
//             its halves n/k min(s_intra, 0.9 s_inter)
// and of the array: times n/steps for Ring, and all-reduce of NVLS and NVLSTree; times 1/2 for
// all-reduce of the others; unchanged for halves of all but Ring.
//
// Latency: base + steps in the node and across; each hop across adds the NIC's own latency, twice
// in the Simple protocol, which flushes. With one rank per node, Tree's network latency stands in
// for that of all.
//   Ring      all-reduce and halves (steps - x) max(intra, posting) + x inter, x = 2(k-1) or k-1
//             Broadcast, Reduce: one hop where all channels are the same, else steps hops, in
//             Simple of Tree's latency
//   Tree      2 ((n/k - 1) intra + log2(k) inter)
//   NVLS      intra, and inter of several nodes      NVLSTree  intra + 2 log2(k) inter
//   PAT       log2(k) inter / 3.5 + 2.8 us n
//   CollNetChain   2 (n/k - 1) intra + inter
//   CollNetDirect  2 (min(1, n/k - 1) intra + 0.4 us (n/k - 1)) + inter
// n/k and log2 round down here.
//
// Example: all-reduce over 4 H100s of a node, 12 channels of 30 GB/s, as NCCL 2.29.2 printed it:
//   Ring LL128   14 + 6 * 1.9 = 25.4 us       min(0.92 * 360, 12 * 36.7) * 4/6 = 220.8 GB/s
//   Tree Simple  8.4 + 2 * 3 * 4 = 32.4 us    min(0.92 * 360, 12 * 38.7) / 2   = 165.6 GB/s
#pragma once

#include <vector>

#include "sim/nccl/availability.hpp"
#include "sim/nccl/communicator.hpp"

namespace shardsim::nccl {

struct Estimate {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  Seconds latency{0};
  Bandwidth bandwidth{0};  // bytes of the full array over time
};

// All enabled pairs, in NCCL's order: algorithms, of each its protocols.
[[nodiscard]] std::vector<Estimate> tuning_table(const Communicator& communicator,
                                                 Operation operation, const Forced& forced = {});

}  // namespace shardsim::nccl
