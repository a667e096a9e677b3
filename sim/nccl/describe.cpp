#include "sim/nccl/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string>

#include "sim/nccl/graph_search.hpp"

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
    NvlinkSpeed{ampere_capability, Bandwidth(20e9)},
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

// Throws for what the graph search does not know.
void check_covered(const Profile& profile, const NodeSpread& spread, const Place& place) {
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  const auto fail = [&](const std::string& why) {
    throw InputError(place,
                     fmt::format("how NCCL sees a node of {} is not known: {}", profile.name, why));
  };
  if (!cluster.nccl) fail("its profile has no section \"nccl\"");
  if (cluster.scale_up.fabric.value != Fabric::nvswitch || !cluster.nccl->nvlink_bandwidth) {
    fail("it has no NVLink switch");
  }
  if (capability_of(*cluster.nccl) < ampere_capability) fail("its GPUs are older than Ampere");
  const std::int64_t gpus = cluster.devices_per_node.value;
  const std::int64_t nics = cluster.scale_out ? cluster.scale_out->nics_per_node.value : gpus;
  if (spread.nodes > 1 && nics < gpus) {
    fail(fmt::format("it has only {} NICs for {} GPUs", nics, gpus));
  }
}

SwitchNode node_of(const ClusterProfile& cluster, std::int64_t members) {
  const NcclProfile& nccl = *cluster.nccl;
  SwitchNode node;
  node.gpus = members;
  node.compute_capability = capability_of(nccl);
  const auto* speed = std::find_if(
      nvlink_speeds.begin(), nvlink_speeds.end(),
      [&](const NvlinkSpeed& of) { return of.from_capability <= node.compute_capability; });
  node.nvlink = speed->counted * std::round(cluster.scale_up.bandwidth.value.count() /
                                            nccl.nvlink_bandwidth->value.count());
  node.pcie = pcie_4 * std::exp2(static_cast<double>(nccl.pcie_generation.value - 4));
  if (cluster.scale_out) node.nic = ways_out(cluster).bandwidth;
  if (nccl.network_latency) node.nic_latency = nccl.network_latency->value;
  node.gpus_per_pcie_switch = nccl.gpus_per_pcie_switch.value;
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
  check_covered(machine.profile, spread, place);
  const bool several_nodes = spread.nodes > 1;
  NodeGraphs graphs = search_graphs(node_of(*cluster, spread.most), several_nodes, place);
  if (spread.fewest != spread.most) {
    graphs = common(graphs, search_graphs(node_of(*cluster, spread.fewest), several_nodes, place));
  }
  Communicator communicator;
  communicator.version = options.version;
  communicator.ranks = spread.members;
  communicator.nodes = spread.nodes;
  communicator.most_ranks_per_node = spread.most;
  communicator.least_compute_capability = capability_of(*cluster->nccl);
  communicator.most_compute_capability = communicator.least_compute_capability;
  communicator.cpu = options.cpu.value_or(cpu_of(cluster->nccl->cpu.value));
  use_graphs(graphs, communicator);
  return communicator;
}

}  // namespace shardsim::nccl
