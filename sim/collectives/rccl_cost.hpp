// Collectives on a cluster of AMD's GPUs as RCCL runs them.
//
// Which algorithm and protocol: what RCCL chooses (nccl/rccl_selection.hpp), or is told to. Launch
// and latency: its constants; but a ring's step across nodes in the Simple protocol, 320 us there,
// is the profile's, since that number is where RCCL's fit puts the cost of something else.
// Transfer: what the links carry, as nccl_cost.hpp has it of rings and trees, over the share of
// data in the protocol's lines: LL 1/2 (4 bytes of 8), LL128 120/128 (ROCm/rccl docs, "Protocols
// and their hardware dependencies").
//
// Example: all-reduce of 64 KiB over 8 MI300X of a node: Ring LL, 12 us + 14 * 0.8 us, and
// 14/8 * 64 KiB twice over 7 links, 448 GB/s of which 0.698 are reached: 23.2 + 0.7 us.
#pragma once

#include "sim/collectives/cluster_rates.hpp"
#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/told_algorithms.hpp"
#include "sim/nccl/node_spread.hpp"

namespace shardsim {

// Of a cluster that has "rccl", for all-reduce, all-gather and reduce-scatter. Throws InputError
// when what is forced cannot run.
[[nodiscard]] CostBreakdown rccl_cost(const ClusterProfile& cluster, const ClusterRates& rates,
                                      const NodeSpread& spread, const Collective& collective,
                                      const Told& told);

}  // namespace shardsim
