// What RCCL chooses for a collective on nodes of MI300X: NCCL's way of choosing (selection.hpp)
// with tables of its own (rccl_constants.hpp), and limits of size that have the last word on the
// protocol.
//
// Of n ranks on k nodes, n/k on each; B = what a GPU's links to the others of its node have as RCCL
// counts them (one rank per node: PCIe); steps as in tuner.hpp:
//
//   bandwidth  B share factor, times n/steps of a ring, 1/2 of a tree's all-reduce
//   latency    base + Ring  (steps - x) max(xGMI, posting) + x network, x = 2(k-1) or k-1
//                     Tree  2 ((n/k - 1) xGMI + log2(k) network)
//   time       latency + bytes / bandwidth; the least is chosen, of equals the tree
//
// With one rank per node a ring's network step is a tree's. Trees reduce only (AllReduce), in one
// node not in the Simple protocol. LL128 is for several nodes with 4 or 8 NICs
// (src/graph/rome_models.cc, read 2026-11: "ll128Enabled").
//
// Then, unless the protocol is forced (src/rccl_wrap.cc @00c78b7): in one node a reduce-scatter of
// at most 352,128 bytes per rank goes by LL; over several nodes sizes decide alone: Simple beyond
// the ranges of rccl_constants.hpp, in them LL or, rather, LL128.
//
// Not here: the direct all-gather of later releases for at most 4 MiB, MSCCL and MSCCL++, and the
// orders of GPUs in RCCL's rings, which use every link alike.
//
// Example: all-reduce over 8 MI300X of a node, B = 7 * 48 GB/s = 336 GB/s:
//   64 KiB  Ring LL      12 us + 14 * 0.8 us + 64 KiB / (336 GB/s * 0.08 * 8/14) = 27.5 us
//           Ring Simple  17 us + 14 * 2.1 us + 64 KiB / (336 GB/s * 8/14)        = 46.7 us
//           Tree LL      12 us + 14 * 0.9 us + 64 KiB / (336 GB/s * 0.06 / 2)    = 31.1 us
#pragma once

#include <vector>

#include "hardware_profiles/machine.hpp"
#include "sim/nccl/node_spread.hpp"
#include "sim/nccl/selection.hpp"

namespace shardsim::nccl {

struct RcclCommunicator {
  std::int64_t ranks = 2;
  std::int64_t nodes = 1;
  Bandwidth links{0};  // B
  bool ll128 = false;
  Cpu cpu = Cpu::intel;
};

// Of a cluster that has "rccl" and a group of at least two. Where nodes hold different numbers, B
// is that of the fewest.
[[nodiscard]] RcclCommunicator describe_rccl(const ClusterProfile& cluster,
                                             const NodeSpread& spread);

// All enabled pairs and their times by the model alone. Of all-reduce, all-gather and
// reduce-scatter.
[[nodiscard]] std::vector<Candidate> rccl_candidates(const RcclCommunicator& communicator,
                                                     const Request& request);

// Latency and time are those of the pair that is chosen in the end. Throws InputError when what is
// forced leaves nothing.
[[nodiscard]] Candidate rccl_choice(const RcclCommunicator& communicator, const Request& request,
                                    const Place& place);

}  // namespace shardsim::nccl
