// Collectives on a cluster as NCCL runs them.
//
// Which algorithm and protocol: what NCCL's tuner chooses (nccl/selection.hpp), or is told to.
// Latency: the tuner's constants (nccl/tuner.hpp); `launch` is the part that every call has.
// Transfer: what the links carry, where NCCL's own estimate counts channels. A group of n ranks on
// k nodes, m on each, payload P, wire bytes of a ring W; in: a rank into its node, out: the m ranks
// out of their node (cluster_rates.hpp):
//
//   Ring      the larger of W / in and W / out and, in the Simple protocol over several nodes of
//             Hopper, W / 20.5 GB/s for each thread block (nccl/tuner_constants.hpp); of a
//             broadcast W = P, which goes along the ring from the first rank on, chunk by chunk
//   Tree      the larger of 2 P / 0.92 in, a chain in every node up and down, and, with double
//             binary trees over nodes, P / out over 2 nodes (each is leaf of one tree and root of
//             the other, half the payload each), 3/2 P / out over 3 (one is between the two others
//             in one tree), 2 P / out over more
//   NVLS      all-reduce (1 + 1/m) P / e in: the switch reads all of P from every rank, and m-th
//             parts of the result go up once more; its halves (m - 1) / m P / e in;
//             e: 0.85 of Hopper's, 0.74 of Blackwell's links (nccl/tuner_constants.hpp)
//   NVLSTree  the larger of NVLS in every node and Tree's way over nodes
//   PAT       W / 0.75 out
//
// Where switches between nodes reduce (the profile's "reduction"), a head is a member with a way
// out of its own, h of them on a node. A head gathers its h-th of P from the node, sends it up
// once, and what comes back has been added up over all nodes: P leaves a node and P comes, whatever
// k, where a ring has 2 (n - 1) / n P each way. out is at the reduction's efficiency:
//
//   CollNetDirect  the larger of P out and, in, what a head sends: its part of P to the h - 1 other
//                  heads and its result to the m - 1 other members, (m + h - 2) / h P; of halves
//                  (m - 1) / m P. A reduce-scatter goes up as P and comes down as P / k, an
//                  all-gather the other way
//   CollNetChain   the larger of P out and 2 P in, a chain in every node up and down
//   NVLS           the larger of P out and NVLS in every node, as above
//
// over the share of data in the protocol's lines: Ring LL 1/2, LL128 0.92; Tree LL 1/3.8, LL128
// 7/9 in a node and 120/128 over nodes.
//
// On so many thread blocks, a multiprocessor each: the channels of rings, or 16 (Hopper), 24 and 32
// (Blackwell, in a node and over several) of NVLS; as few as give each of 512 threads (LL128: 640)
// 64 bytes (LL and LL128: 8, for every rank of a ring of LL). CollNet's 640 threads have 512 bytes
// each, in CollNetDirect for every head; there the bytes halve on the way down past 24, 12, 6 and 3
// blocks.
//
// Example: all-reduce of 4 GiB over 8 H100s of a node, in 370.8 GB/s: NVLS, 9/8 * 4.295e9 / (0.85 *
// 370.8e9) = 15.3 ms, a bus bandwidth of 490 GB/s; 474 to 480 have been measured.
// Over 16 of two nodes whose network reduces: NVLS the same in the node, across 4.295e9 / (8 * 50e9
// * 0.95) = 11.3 ms.
#pragma once

#include <optional>

#include "sim/collectives/cluster_rates.hpp"
#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/told_algorithms.hpp"
#include "sim/nccl/node_spread.hpp"
#include "sim/nccl/selection.hpp"

namespace shardsim {

struct NcclGroup {
  const ClusterRates& rates;
  const NodeSpread& spread;
  const nccl::Communicator& communicator;
};

// What NCCL's tuner chooses for; nothing for all-to-all and permute, which NCCL sends as messages.
[[nodiscard]] std::optional<nccl::Operation> nccl_operation(CollectiveKind kind);

// What NCCL's or RCCL's tuner is asked. Only for kinds that it chooses for.
[[nodiscard]] nccl::Request nccl_request(const Collective& collective, const Told& told);

// Of rings and trees, as above: transfer, links and memory. Of what is sent a share is data.
[[nodiscard]] CostBreakdown ring_or_tree_transfer(const ClusterRates& rates,
                                                  const NodeSpread& spread,
                                                  const Collective& collective,
                                                  nccl::Algorithm algorithm, double share_of_data);

// Throws InputError, with the reason, when what is forced cannot run.
[[nodiscard]] CostBreakdown nccl_cost(const NcclGroup& group, const Collective& collective,
                                      const Told& told);

}  // namespace shardsim
