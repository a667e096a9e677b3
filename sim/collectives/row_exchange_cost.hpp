// An all-to-all of rows that cross the network once for each node (plan/row_visits.hpp).
//
//   unit    = payload / copies by device       all rows of a device, once
//   across  = unit * copies by node * (nodes - 1) / nodes
//   inside  = payload / members * (peers in the node + devices of other nodes * (m - 1) / m)
//             m members of a node: what has arrived at one is passed on to the others
//   time    = a hop across and one inside + max(across / network, inside / node): rows are passed
//             on while others arrive
//
// Where the device's kernel tables say what such kernels need (KernelData::row_exchange) their
// overhead stands for the hops, and what their multiprocessors take is a third bound.
//
// Example: 256 experts on 32 devices in 4 nodes, 8 visited: 7.2 copies by device, 3.6 by node; of
// 59 MB of rows a device sends 160 MB over the network, where each copy by itself were 320 MB.
#pragma once

#include <optional>

#include "hardware_profiles/kernel_data.hpp"
#include "plan/plan.hpp"
#include "sim/collectives/cluster_rates.hpp"
#include "sim/collectives/cost_breakdown.hpp"
#include "sim/nccl/node_spread.hpp"

namespace shardsim {

// `kernels`: none where the device has no tables.
[[nodiscard]] CostBreakdown row_exchange_cost(const ClusterRates& rates, const NodeSpread& spread,
                                              Bytes payload, const RowVisits& visits,
                                              const std::optional<KernelData>& kernels);

}  // namespace shardsim
