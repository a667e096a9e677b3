#include "sim/nccl/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/nccl/graph_search.hpp"

namespace shardsim::nccl {
namespace {

constexpr Bandwidth pcie_4{24e9};
constexpr Bandwidth pcie_5{48e9};

struct DeviceFacts {
  std::string_view name;  // how the profile's begins
  int compute_capability;
  Bandwidth nvlink;          // of one link, each way, as sold
  Bandwidth nvlink_counted;  // as NCCL counts it
  Bandwidth pcie;
  std::int64_t gpus_per_pcie_switch;
  Cpu cpu;
};

constexpr Bandwidth nvlink_3{25e9};
constexpr Bandwidth nvlink_4{25e9};
constexpr Bandwidth nvlink_5{50e9};
constexpr std::array devices = {
    DeviceFacts{"A100 SXM", 80, nvlink_3, Bandwidth(20e9), pcie_4, 2, Cpu::amd},
    DeviceFacts{"H100 SXM", 90, nvlink_4, Bandwidth(20.6e9), pcie_5, 1, Cpu::intel},
    DeviceFacts{"H200 SXM", 90, nvlink_4, Bandwidth(20.6e9), pcie_5, 1, Cpu::intel},
    DeviceFacts{"B200", 100, nvlink_5, Bandwidth(40.1e9), pcie_5, 1, Cpu::intel},
};

const DeviceFacts& facts_of(const Profile& profile, const Place& place) {
  std::string known;
  for (const DeviceFacts& device : devices) {
    if (profile.device.name.starts_with(device.name)) return device;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", device.name);
  }
  throw InputError(place, fmt::format("how NCCL sees a node of \"{}\" is not known; it is of {}",
                                      profile.device.name, known));
}

SwitchNode node_of(const ClusterProfile& cluster, const DeviceFacts& device, std::int64_t members) {
  const double links = std::round(cluster.scale_up.bandwidth.value.count() / device.nvlink.count());
  SwitchNode node;
  node.gpus = members;
  node.compute_capability = device.compute_capability;
  node.nvlink = device.nvlink_counted * links;
  node.pcie = device.pcie;
  node.nic = cluster.scale_out.bandwidth.value;
  node.gpus_per_pcie_switch = device.gpus_per_pcie_switch;
  return node;
}

// All nodes of a communicator go at the pace of the slowest.
ChannelGraph common(const ChannelGraph& a, const ChannelGraph& b) {
  ChannelGraph graph;
  graph.channels = std::min(a.channels, b.channels);
  graph.intra = std::min(a.intra, b.intra);
  graph.inter = std::min(a.inter, b.inter);
  graph.intra_path = std::max(a.intra_path, b.intra_path);
  graph.inter_path = std::max(a.inter_path, b.inter_path);
  graph.same_channels = a.same_channels && b.same_channels;
  graph.network_latency = std::max(a.network_latency, b.network_latency);
  return graph;
}

NodeGraphs common(const NodeGraphs& a, const NodeGraphs& b) {
  NodeGraphs graphs;
  graphs.ring = common(a.ring, b.ring);
  graphs.tree = common(a.tree, b.tree);
  graphs.nvls = common(a.nvls, b.nvls);
  graphs.plain_tree = a.plain_tree || b.plain_tree;
  graphs.ring_channels = std::min(a.ring_channels, b.ring_channels);
  return graphs;
}

}  // namespace

Communicator describe(const Machine& machine, const NodeSpread& spread,
                      const DescribeOptions& options, const Place& place) {
  const auto* cluster = std::get_if<ClusterProfile>(&machine.profile.network);
  if (cluster == nullptr) {
    throw InputError(place, fmt::format("NCCL does not run on {}", machine.profile.name));
  }
  if (spread.members < 2) throw InputError(place, "one rank has nothing to choose");
  const DeviceFacts& device = facts_of(machine.profile, place);
  const bool several_nodes = spread.nodes > 1;
  NodeGraphs graphs = search_graphs(node_of(*cluster, device, spread.most), several_nodes, place);
  if (spread.fewest != spread.most) {
    graphs = common(graphs,
                    search_graphs(node_of(*cluster, device, spread.fewest), several_nodes, place));
  }
  Communicator communicator;
  communicator.version = options.version;
  communicator.ranks = spread.members;
  communicator.nodes = spread.nodes;
  communicator.most_ranks_per_node = spread.most;
  communicator.least_compute_capability = device.compute_capability;
  communicator.most_compute_capability = device.compute_capability;
  communicator.cpu = options.cpu.value_or(device.cpu);
  use_graphs(graphs, communicator);
  return communicator;
}

}  // namespace shardsim::nccl
