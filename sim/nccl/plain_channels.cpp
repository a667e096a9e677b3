#include "sim/nccl/plain_channels.hpp"

#include <algorithm>
#include <cmath>

namespace shardsim::nccl {
namespace {

// In one node, as many as NCCL mostly ends with.
constexpr std::int64_t channels_in_node = 16;
constexpr double slowest_of_first = 0.49;  // as the search has it

ChannelGraph even_shares(const PlainNode& node) {
  ChannelGraph graph;
  graph.channels = channels_in_node;
  graph.intra = graph.inter = node.inside / static_cast<double>(channels_in_node);
  return graph;
}

// How many channels of a speed fit.
std::int64_t fitting(const PlainNode& node, std::int64_t speed) {
  const std::int64_t of_nics = node.nics * (std::llround(node.nic.count()) / speed);
  const std::int64_t of_links = std::llround(node.inside.count()) / speed;
  return node.gpus == 1 ? of_nics : std::min(of_nics, of_links);
}

ChannelGraph rings_across(const PlainNode& node, const std::vector<std::int64_t>& speeds) {
  ChannelGraph graph;
  std::int64_t found = 0;
  std::int64_t first = 0;
  for (const std::int64_t speed : speeds) {
    if (static_cast<double>(speed) <= slowest_of_first * static_cast<double>(first)) break;
    const std::int64_t channels = fitting(node, speed);
    if (channels * speed <= found) continue;
    if (found == 0) first = speed;
    found = channels * speed;
    graph.channels = channels;
    graph.intra = graph.inter = Bandwidth(static_cast<double>(speed));
  }
  if (found == 0) {  // slower than the list goes
    graph.channels = node.nics;
    graph.intra = graph.inter = node.nic;
  }
  if (are_doubled(graph.channels, graph.intra, node.compute_capability)) {
    graph.channels *= 2;
    graph.intra = graph.inter = graph.inter / 2.0;
  }
  return graph;
}

// A chain has one hop less than a ring: its GPUs' links look that much wider.
ChannelGraph trees_across(ChannelGraph graph, const PlainNode& node,
                          const std::vector<std::int64_t>& speeds) {
  const auto n = static_cast<double>(node.gpus);
  const double inside = node.inside.count() * (node.gpus > 1 ? n / (n - 1) : 1);
  for (auto speed = speeds.rbegin(); speed != speeds.rend(); ++speed) {
    const auto faster = static_cast<double>(*speed);
    if (faster <= graph.intra.count()) continue;
    const bool fits = node.gpus == 1 || faster * static_cast<double>(graph.channels) <= inside;
    if (!fits || graph.intra.count() >= 2 * graph.inter.count()) break;
    graph.intra = Bandwidth(faster);
  }
  return graph;
}

ChannelGraph collnet_heads(const ChannelGraph& ring, const PlainNode& node) {
  ChannelGraph graph = ring;
  graph.channels = node.nics;
  graph.inter = node.nic;
  graph.intra = node.gpus > 1 ? std::min(node.inside / 2, node.nic) : node.nic;
  return graph;
}

}  // namespace

NodeGraphs plain_graphs(const PlainNode& node, std::int64_t nodes) {
  const bool several_nodes = nodes > 1;
  const std::vector<std::int64_t> speeds = channel_speeds(node.compute_capability, several_nodes);
  ChannelGraph graph = several_nodes ? rings_across(node, speeds) : even_shares(node);
  graph.intra_path = node.gpus == 1     ? PathType::local
                     : node.nvlink      ? PathType::nvlink
                     : node.host_bridge ? PathType::pcie_host
                                        : PathType::pcie_switch;
  if (node.far_nics) graph.inter_path = PathType::pcie_host;
  graph.network_latency = several_nodes ? node.nic_latency : Seconds(0);
  NodeGraphs graphs;
  graphs.ring = graph;
  graphs.tree = several_nodes ? trees_across(graph, node, speeds) : graph;
  graphs.nvls.channels = 0;
  if (several_nodes && node.network_reduces) {
    graphs.collnet_chain = graphs.tree;
    graphs.collnet_direct = collnet_heads(graph, node);
  }
  graphs.ring_channels = several_nodes ? blocks_between_nodes(ring_blocks(graph.channels),
                                                              graph.intra, node.compute_capability)
                                       : channels_in_node;
  return graphs;
}

}  // namespace shardsim::nccl
