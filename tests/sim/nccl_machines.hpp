// Nodes as NCCL counts them: bandwidth of NVLink is links times NCCL's figure for one.
#pragma once

#include "sim/nccl/graph_search.hpp"

namespace shardsim::testing {

inline nccl::SwitchNode h100_node(std::int64_t gpus) {
  nccl::SwitchNode node;
  node.gpus = gpus;
  node.compute_capability = 90;
  node.nvlink = Bandwidth(18 * 20.6e9);
  node.pcie = Bandwidth(48e9);
  node.nic = Bandwidth(50e9);
  return node;
}

inline nccl::Communicator h100_communicator(std::int64_t ranks, std::int64_t nodes,
                                            nccl::Version version = nccl::Version::v2_30) {
  nccl::Communicator communicator;
  communicator.version = version;
  communicator.ranks = ranks;
  communicator.nodes = nodes;
  communicator.most_ranks_per_node = ranks / nodes;
  nccl::use_graphs(nccl::search_graphs(h100_node(ranks / nodes), nodes > 1).value(), communicator);
  return communicator;
}

}  // namespace shardsim::testing
