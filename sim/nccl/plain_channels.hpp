// Channels of a node that NCCL's search is not written down for (graph_search.hpp): GPUs joined by
// links of their own, over PCIe, that share NICs, or are older than Ampere. All channels carry an
// even share of what the links have in all, which is more than NCCL may find.
//
//   ring  in the node what a GPU's links have, over nodes no more than the NICs
//   tree  the same; over two nodes NCCL counts the inside alone
//   CollNetChain   that of trees
//   CollNetDirect  a head for every NIC: half of what a GPU's links have, no more than the NIC
//
// Example: 4 GH200 of a node, 18 links of 20.6 GB/s to the three others: 16 channels of 23.2 GB/s;
// over several nodes with a NIC of 25 GB/s each, 16 of 6.25 GB/s.
#pragma once

#include "sim/nccl/graph_search.hpp"

namespace shardsim::nccl {

struct PlainNode {
  std::int64_t gpus = 8;     // ranks on it
  Bandwidth inside{0};       // of a GPU to the others, each way, as NCCL counts it
  Bandwidth out{0};          // of all its ranks out of the node
  bool nvlink = true;        // else PCIe
  bool host_bridge = false;  // PCIe passes through the host
  Seconds nic_latency{0};
  std::int64_t reducing_nics = 0;  // NICs of its ranks to a network that reduces
};

[[nodiscard]] NodeGraphs plain_graphs(const PlainNode& node, std::int64_t nodes);

}  // namespace shardsim::nccl
