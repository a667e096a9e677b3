#include "sim/nccl/plain_channels.hpp"

#include <algorithm>

namespace shardsim::nccl {
namespace {

// As many as NCCL mostly ends with.
constexpr std::int64_t channels = 16;

}  // namespace

NodeGraphs plain_graphs(const PlainNode& node, std::int64_t nodes) {
  const bool several_nodes = nodes > 1;
  const Bandwidth inside = node.gpus > 1 ? node.inside : node.out;
  const Bandwidth narrowest = several_nodes ? std::min(inside, node.out) : inside;
  ChannelGraph graph;
  graph.channels = channels;
  graph.intra = graph.inter = narrowest / static_cast<double>(channels);
  graph.intra_path = node.gpus == 1     ? PathType::local
                     : node.nvlink      ? PathType::nvlink
                     : node.host_bridge ? PathType::pcie_host
                                        : PathType::pcie_switch;
  graph.network_latency = several_nodes ? node.nic_latency : Seconds(0);
  NodeGraphs graphs;
  graphs.ring = graph;
  graphs.tree = graph;
  if (nodes == 2) graphs.tree.intra = inside / static_cast<double>(channels);
  graphs.nvls.channels = 0;
  if (several_nodes && node.reducing_nics > 0) {
    graphs.collnet_chain = graph;
    graphs.collnet_direct = graph;
    graphs.collnet_direct.channels = node.reducing_nics;
    const Bandwidth nic = node.out / static_cast<double>(node.reducing_nics);
    graphs.collnet_direct.inter = nic;
    graphs.collnet_direct.intra = node.gpus > 1 ? std::min(inside / 2, nic) : nic;
  }
  graphs.ring_channels = channels;
  return graphs;
}

}  // namespace shardsim::nccl
