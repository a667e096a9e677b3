#include "sim/nccl/availability.hpp"

#include <fmt/format.h>

#include "sim/nccl/tuner_constants.hpp"

namespace shardsim::nccl {
namespace {

constexpr const char* reducing_network =
    "a network that reduces (\"reduction\" in a profile's scale_out)";

bool is_half_of_all_reduce(Operation operation) {
  return operation == Operation::all_gather || operation == Operation::reduce_scatter;
}

bool speaks(Algorithm algorithm, Protocol protocol) {
  const bool all = algorithm == Algorithm::ring || algorithm == Algorithm::tree;
  return all || protocol == Protocol::simple;
}

bool implements(Algorithm algorithm, Operation operation) {
  switch (operation) {
    case Operation::broadcast:
    case Operation::reduce:
      return algorithm == Algorithm::ring;
    case Operation::all_gather:
    case Operation::reduce_scatter:
      return algorithm == Algorithm::ring || algorithm == Algorithm::nvls ||
             algorithm == Algorithm::collnet_direct || algorithm == Algorithm::pat;
    case Operation::all_reduce:
      break;
  }
  return algorithm != Algorithm::pat;
}

std::string why_no_ll128(const Communicator& communicator, const ChannelGraph& graph) {
  const int least = communicator.least_compute_capability;
  if (least < 70) return "LL128 needs Volta or later";
  const bool may_mix = communicator.version >= Version::v2_30 && least >= hopper_capability;
  if (least != communicator.most_compute_capability && !may_mix) {
    return "LL128 needs GPUs of one generation";
  }
  if (graph.intra_path > PathType::nvlink_gpu) return "LL128 needs NVLink in the node";
  const PathType farthest =
      least >= hopper_capability ? PathType::gpu_beside_nic : PathType::pcie_switches;
  if (graph.inter_path > farthest) return "the NICs are too far from the GPUs for LL128";
  return "";
}

// All-gather and reduce-scatter over switches that reduce, between nodes.
std::string why_no_half(const Communicator& communicator, Operation operation) {
  const CollNet& collnet = *communicator.collnet;
  const bool offered =
      operation == Operation::all_gather ? collnet.all_gather : collnet.reduce_scatter;
  if (!offered) return fmt::format("the network's plugin has no {}", name_of(operation));
  if (communicator.most_ranks_per_node > collnet.heads) return "not every GPU has a NIC of its own";
  return "";
}

std::string why_no_nvls(const Communicator& communicator, Operation operation,
                        Algorithm algorithm) {
  const std::int64_t fewest = communicator.version == Version::v2_28 ? 3 : 2;
  if (!communicator.nvswitch) return "NVLS needs NVSwitch";
  if (communicator.least_compute_capability < hopper_capability)
    return "NVLS needs Hopper or later";
  if (communicator.most_ranks_per_node < fewest) {
    return fmt::format("NVLS needs {} GPUs of a node", fewest);
  }
  if (communicator.nvls.channels < 2) return "NVLS needs two channels";
  if (algorithm == Algorithm::nvls_tree) {
    return communicator.nodes == 1 ? "one node has no tree of nodes" : "";
  }
  if (is_half_of_all_reduce(operation) && communicator.most_ranks_per_node > most_nvls_ranks) {
    return fmt::format("NVLS has {} ranks of a node at most", most_nvls_ranks);
  }
  if (communicator.nodes == 1) return "";
  if (!communicator.collnet) {
    return std::string("NVLS over several nodes needs ") + reducing_network;
  }
  return is_half_of_all_reduce(operation) ? why_no_half(communicator, operation) : "";
}

std::string why_no_collnet(const Communicator& communicator, Operation operation,
                           Algorithm algorithm) {
  if (communicator.nodes == 1) return "CollNet needs several nodes";
  if (!communicator.collnet || communicator.graph(algorithm).channels == 0) {
    return std::string("CollNet needs ") + reducing_network;
  }
  if (communicator.most_ranks_per_node > most_collnet_ranks) {
    return fmt::format("CollNet has {} ranks of a node at most", most_collnet_ranks);
  }
  if (algorithm == Algorithm::collnet_direct && !communicator.nvswitch) {
    return "CollNetDirect needs NVSwitch";
  }
  return is_half_of_all_reduce(operation) ? why_no_half(communicator, operation) : "";
}

std::string why_no_pat(const Communicator& communicator) {
  if (communicator.ranks != communicator.nodes) return "PAT needs one rank per node";
  if (communicator.network_offload) return "PAT needs a network driven by the host";
  return "";
}

}  // namespace

bool exists(Operation operation, Algorithm algorithm, Protocol protocol) {
  return implements(algorithm, operation) && speaks(algorithm, protocol);
}

std::string why_disabled(const Communicator& communicator, Operation operation, Algorithm algorithm,
                         Protocol protocol, const Forced& forced) {
  if (forced.algorithm && *forced.algorithm != algorithm) return "another algorithm is forced";
  if (forced.protocol && *forced.protocol != protocol) return "another protocol is forced";
  if (!implements(algorithm, operation)) {
    return fmt::format("{} does not implement {}", name_of(algorithm), name_of(operation));
  }
  if (algorithm == Algorithm::ring || algorithm == Algorithm::tree) {
    const ChannelGraph& graph = communicator.graph(algorithm);
    if (graph.channels == 0) return "no channel was found";
    const bool free = protocol == Protocol::ll128 && !forced.protocol;
    return free ? why_no_ll128(communicator, graph) : "";
  }
  if (!speaks(algorithm, protocol)) {
    return fmt::format("{} speaks Simple only", name_of(algorithm));
  }
  if (is_nvls(algorithm)) return why_no_nvls(communicator, operation, algorithm);
  if (is_collnet(algorithm)) return why_no_collnet(communicator, operation, algorithm);
  return why_no_pat(communicator);
}

}  // namespace shardsim::nccl
