// Collectives on a cluster: nodes of devices on a fabric, NICs between nodes.
//
// Of a group of n members on k nodes, with m members on the node that has fewest of them, and the
// wire bytes of a ring, B = wire_bytes_per_device:
//
//   k == 1  ring in the node                       B / scale_up           n - 1 steps
//   k > 1   m rings over all n members, each       B / (w * way out)      k steps across nodes and
//           carrying 1/m of the payload and        and, if a node has     n - k - 1 inside, or
//           leaving every node by w ways           several members,       k - 1 across when every
//                                                  B / scale_up:          member has a node alone
//                                                  the larger
//
// The w ways out that a group has of a node: cluster_rates.hpp. Direct links (not NVSwitch) count
// as far as they end at members: bandwidth_inside.
//
// An all-reduce is a reduce-scatter and an all-gather: B counts both, the steps double. A broadcast
// sends B = P along a ring, chunk by chunk: n - 1 steps, k - 1 of them across. RCCL's has this
// cost, too. An all-to-all goes pairwise: each member sends P/n to every other, over its NIC or
// inside its node, both at once; a step per peer. In one node NCCL's channels copy all P, which can
// take longer than links (nccl/message_channels.hpp). A permute sends P in one step.
//
// Example: all-gather of 1 GiB over 16 devices of 2 nodes of 8, NICs of 50 GB/s, NVLink 450 GB/s:
//   B = 15/16 GiB; across 1.007e9 / (8 * 50e9) = 2.52 ms, inside 1.007e9 / 450e9 = 2.24 ms: 2.52 ms
#pragma once

#include <map>

#include "sim/collectives/calibrated_cost.hpp"
#include "sim/collectives/cluster_rates.hpp"
#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/placement.hpp"
#include "sim/collectives/told_algorithms.hpp"
#include "sim/nccl/communicator.hpp"
#include "sim/nccl/node_spread.hpp"

namespace shardsim {

// Where the profile says what NCCL or RCCL sees of a node, collectives that it chooses algorithms
// for go as nccl_cost.hpp and rccl_cost.hpp have them, the others, and all without such a section,
// as above. Then what machines alike have taken comes in (calibrated_cost.hpp).
class ClusterCosts {
 public:
  // Keeps a reference to `placement`.
  explicit ClusterCosts(const Placement& placement);

  // The slowest of the groups. Throws InputError where an algorithm is asked for that cannot run.
  [[nodiscard]] CostBreakdown cost(const Collective& collective, const Told& told);

 private:
  // `key` but for the algorithm.
  [[nodiscard]] CostBreakdown corrected(const CurveKey& key, Bytes payload, const CostOfSize& cost,
                                        const CostWithMembers& with_members = {}) const;
  // Keeps a reference to `told`.
  [[nodiscard]] CostWithMembers with_members(const NodeSpread& spread, CollectiveKind kind,
                                             const Told& told);
  [[nodiscard]] CostBreakdown group_cost(const ClusterRates& rates, const NodeSpread& spread,
                                         CollectiveKind kind, Bytes payload, const Told& told);
  // Nothing where NCCL does not run.
  [[nodiscard]] const nccl::Communicator* communicator_of(const NodeSpread& spread);

  const Placement& placement_;
  const ClusterProfile& cluster_;
  std::map<NodeSpread, nccl::Communicator> communicators_;  // their search takes up to 0.3 s
};

}  // namespace shardsim
