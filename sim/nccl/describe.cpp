#include "sim/nccl/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string>

#include "sim/nccl/graph_search.hpp"
#include "sim/nccl/message_channels.hpp"
#include "sim/nccl/plain_channels.hpp"

namespace shardsim::nccl {
namespace {

// src/graph/topo.h: what NCCL counts an NVLink as, from a compute capability on.
struct NvlinkSpeed {
  int from_capability;
  Bandwidth counted;
};
constexpr std::array nvlink_speeds = {
    NvlinkSpeed{blackwell_capability, Bandwidth(40.1e9)},
    NvlinkSpeed{hopper_capability, Bandwidth(20.6e9)},
    NvlinkSpeed{0, Bandwidth(20e9)},
};

// src/graph/topo.h, LOC to SYS and PCI: 16 lanes of generation 4; each generation doubles.
constexpr Bandwidth pcie_4{24e9};

int capability_of(const NcclProfile& nccl) {
  constexpr double digits = 10;  // 9.0 is 90
  return static_cast<int>(std::lround(nccl.compute_capability.value * digits));
}

Cpu cpu_of(HostCpu cpu) {
  switch (cpu) {
    case HostCpu::intel:
      return Cpu::intel;
    case HostCpu::amd:
      return Cpu::amd;
    case HostCpu::arm:
      return Cpu::arm;
    case HostCpu::power:
      return Cpu::power;
  }
  assert(false);
  return Cpu::intel;
}

// As NCCL counts all of a GPU's links into its node.
Bandwidth counted_inside(const ClusterProfile& cluster, std::int64_t members) {
  const NcclProfile& nccl = *cluster.nccl;
  const Bandwidth sold = bandwidth_inside(cluster, members);
  if (!nccl.nvlink_bandwidth) return sold * cluster.scale_up.efficiency.value;
  const auto* speed = std::find_if(
      nvlink_speeds.begin(), nvlink_speeds.end(),
      [&](const NvlinkSpeed& of) { return of.from_capability <= capability_of(nccl); });
  return speed->counted * std::round(sold.count() / nccl.nvlink_bandwidth->value.count());
}

Bandwidth pcie_of(const NcclProfile& nccl) {
  return pcie_4 * std::exp2(static_cast<double>(nccl.pcie_generation.value - 4));
}

// Whether the graph search knows such nodes.
bool is_searched(const ClusterProfile& cluster, bool several_nodes) {
  if (cluster.scale_up.fabric.value != Fabric::nvswitch || !cluster.nccl->nvlink_bandwidth ||
      capability_of(*cluster.nccl) < ampere_capability) {
    return false;
  }
  return !several_nodes || cluster.scale_out->nics_per_node.value >= cluster.devices_per_node.value;
}

bool network_reduces(const ClusterProfile& cluster) {
  return cluster.scale_out && cluster.scale_out->reduction;
}

SwitchNode node_of(const ClusterProfile& cluster, std::int64_t members) {
  const NcclProfile& nccl = *cluster.nccl;
  SwitchNode node;
  node.gpus = members;
  node.compute_capability = capability_of(nccl);
  node.nvlink = counted_inside(cluster, members);
  node.pcie = pcie_of(nccl);
  if (cluster.scale_out) node.nic = ways_out(cluster).bandwidth;
  if (nccl.network_latency) node.nic_latency = nccl.network_latency->value;
  node.gpus_per_pcie_switch = nccl.gpus_per_pcie_switch.value;
  node.network_reduces = network_reduces(cluster);
  return node;
}

PlainNode plain_node_of(const ClusterProfile& cluster, std::int64_t members) {
  PlainNode node;
  node.gpus = members;
  node.compute_capability = capability_of(*cluster.nccl);
  node.inside = counted_inside(cluster, members);
  node.nvlink = cluster.nccl->nvlink_bandwidth.has_value();
  node.host_bridge = cluster.nccl->gpus_per_pcie_switch.value < members;
  if (cluster.scale_out) {
    const WaysOut ways = ways_out(cluster);
    node.nics = std::min(members, ways.per_node);
    node.nic = std::min(ways.bandwidth, pcie_of(*cluster.nccl));
    // Fewer NICs than PCIe switches: some GPU has none on its own.
    node.far_nics =
        cluster.scale_out->nics_per_node.value * cluster.nccl->gpus_per_pcie_switch.value <
        cluster.devices_per_node.value;
    node.network_reduces = network_reduces(cluster);
  }
  if (cluster.nccl->network_latency) node.nic_latency = cluster.nccl->network_latency->value;
  return node;
}

NodeGraphs graphs_of(const ClusterProfile& cluster, std::int64_t members, std::int64_t nodes) {
  if (is_searched(cluster, nodes > 1)) {
    const auto found = search_graphs(node_of(cluster, members), nodes > 1);
    if (found) return *found;
  }
  return plain_graphs(plain_node_of(cluster, members), nodes);
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
  graphs.collnet_direct = common(a.collnet_direct, b.collnet_direct);
  graphs.collnet_chain = common(a.collnet_chain, b.collnet_chain);
  graphs.plain_tree = a.plain_tree || b.plain_tree;
  graphs.ring_channels = std::min(a.ring_channels, b.ring_channels);
  return graphs;
}

// A GPU's NICs, up to what its PCIe link carries.
std::int64_t network_channels_of(const ClusterProfile& cluster) {
  const ScaleOutProfile& network = *cluster.scale_out;
  const std::int64_t ways = ways_out(cluster).per_node;
  const Bandwidth pcie = pcie_of(*cluster.nccl);
  const Bandwidth nic = std::min(network.bandwidth.value, pcie);
  std::int64_t nics = 1;
  while (nics < network.nics_per_node.value / ways && nic * static_cast<double>(nics) < pcie) {
    ++nics;
  }
  return channels_for_network(nics, nic * static_cast<double>(nics));
}

// Of several nodes.
std::optional<CollNet> collnet_of(const ClusterProfile& cluster, const NodeGraphs& graphs) {
  if (!network_reduces(cluster)) return std::nullopt;
  const ReductionProfile& reduction = *cluster.scale_out->reduction;
  const ChannelGraph& heads = graphs.nvls.channels > 0 ? graphs.nvls : graphs.collnet_direct;
  CollNet collnet;
  collnet.all_gather = reduction.all_gather && reduction.all_gather->value;
  collnet.reduce_scatter = reduction.reduce_scatter && reduction.reduce_scatter->value;
  collnet.heads = heads.channels;
  return collnet;
}

}  // namespace

Communicator describe(const Machine& machine, const NodeSpread& spread,
                      const DescribeOptions& options, const Place& place) {
  const auto* cluster = std::get_if<ClusterProfile>(&machine.profile.network);
  if (cluster == nullptr) {
    throw InputError(place, fmt::format("NCCL does not run on {}", machine.profile.name));
  }
  if (spread.members < 2) throw InputError(place, "one rank has nothing to choose");
  if (!cluster->nccl) {
    throw InputError(place, fmt::format("how NCCL sees a node of {} is not known: its profile has "
                                        "no section \"nccl\"",
                                        machine.profile.name));
  }
  NodeGraphs graphs = graphs_of(*cluster, spread.most, spread.nodes);
  if (spread.fewest != spread.most) {
    graphs = common(graphs, graphs_of(*cluster, spread.fewest, spread.nodes));
  }
  Communicator communicator;
  communicator.version = options.version;
  communicator.ranks = spread.members;
  communicator.nodes = spread.nodes;
  communicator.most_ranks_per_node = spread.most;
  communicator.nvswitch = cluster->scale_up.fabric.value == Fabric::nvswitch;
  communicator.least_compute_capability = capability_of(*cluster->nccl);
  communicator.most_compute_capability = communicator.least_compute_capability;
  communicator.cpu = options.cpu.value_or(cpu_of(cluster->nccl->cpu.value));
  use_graphs(graphs, communicator);
  const auto& unpacks = cluster->nccl->unpacks_on_gpu;
  if (spread.nodes > 1 && unpacks && unpacks->value) {
    communicator.network_offload = true;
    // src/graph/connect.cc: GPUs that unpack take twice as many blocks, where these are few.
    constexpr std::int64_t few_blocks = 16;
    if (communicator.ring_channels < few_blocks) communicator.ring_channels *= 2;
  }
  if (spread.nodes > 1) {
    communicator.collnet = collnet_of(*cluster, graphs);
    communicator.network_channels = network_channels_of(*cluster);
  }
  return communicator;
}

}  // namespace shardsim::nccl
