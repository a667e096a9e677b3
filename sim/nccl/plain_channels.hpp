// Channels of a node that NCCL's search is not written down for (graph_search.hpp): GPUs joined by
// links of their own, over PCIe, that share NICs, or are older than Ampere.
//
// In one node 16 channels carry an even share of what the links have in all, which is more than
// NCCL may find. Over several nodes what NICs carry decides, and channels have speeds of NCCL's
// list: at each of these every NIC that the ranks reach has as many as fit its bandwidth, all
// together no more than a GPU's links in the node. The speed whose channels carry the most is
// taken, none below half of the first that fits; they are doubled as those of the search are.
//
//   ring  that speed, in the node and across
//   tree  the same; in the node it is raised to the first speed from twice that across on, as far
//         as links go, which NCCL counts over two nodes
//   CollNetChain   that of trees
//   CollNetDirect  a head for every NIC: half of what a GPU's links have, no more than the NIC
//
// Example: 4 GH200 of a node, 18 links of 20.6 GB/s to the three others: 16 channels of 23.2 GB/s;
// over several nodes with a NIC of 25 GB/s each 4 of 24, trees 48 in the node: over two nodes
// min(0.92 * 192, 4 * 41.4) / 2 = 82.8 GB/s of a tree are more than the ring's 96 * 8 / 14 = 54.9.
// 4 A100s with 2 such NICs: 2 of 24; of a tree 2 * 23.6 / 2 = 23.6, less than the ring's 27.4.
#pragma once

#include "sim/nccl/graph_search.hpp"

namespace shardsim::nccl {

struct PlainNode {
  std::int64_t gpus = 8;  // ranks on it
  int compute_capability = hopper_capability;
  Bandwidth inside{0};       // of a GPU to the others, each way, as NCCL counts it
  std::int64_t nics = 8;     // that its ranks reach
  Bandwidth nic{0};          // each way, of one
  bool nvlink = true;        // else PCIe
  bool host_bridge = false;  // PCIe passes through the host
  bool far_nics = false;     // from some GPU to every NIC, too
  Seconds nic_latency{0};
  bool network_reduces = false;
};

[[nodiscard]] NodeGraphs plain_graphs(const PlainNode& node, std::int64_t nodes);

}  // namespace shardsim::nccl
