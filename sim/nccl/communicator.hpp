// A communicator as NCCL's tuner sees it: how many ranks on how many nodes, what kind of GPU and
// CPU, and, for every shape of algorithm, the channels that its graph search laid out.
//
// A channel is one ring, tree or set of switch buffers that one thread block drives. The search
// (graph_search.hpp) finds how many of them fit beside each other and at what speed each.
//
//   Eight H100s behind NVSwitch, printed by NCCL 2.19 to 2.30 with NCCL_DEBUG_SUBSYS=GRAPH:
//     Pattern 4, nChannels 12, bw 30/30, type NVL/PIX, sameChannels 1     ring
//     Pattern 1, nChannels 12, bw 30/30, type NVL/PIX, sameChannels 1     tree
//     Pattern 5, nChannels 8,  bw 40/60, type NVL/PIX, sameChannels 0     nvls
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/units.hpp"

namespace shardsim::nccl {

// Releases whose rules we read: 2.28.3, 2.29 and 2.30.7. What differs is in tuner_constants.hpp
// and availability.hpp.
enum class Version : std::uint8_t { v2_28, v2_29, v2_30 };

// In NCCL's order, which decides between equal times.
enum class Algorithm : std::uint8_t {
  tree,            // a chain in every node, double binary trees across nodes
  ring,            //
  collnet_direct,  // switches of the network reduce (SHARP); every GPU sends to every head
  collnet_chain,   // the same, a chain in every node
  nvls,            // NVSwitch reduces and multicasts (NVLink SHARP)
  nvls_tree,       // nvls in every node, double binary trees across nodes
  pat,             // parallel aggregated trees, one rank per node
};
inline constexpr int algorithms = 7;

enum class Protocol : std::uint8_t {
  ll,      // 8 bytes of data in a line of 16: no fences
  ll128,   // 120 bytes of data in a line of 128: needs NVLink's order of stores
  simple,  // whole chunks, then a flag
};
inline constexpr int protocols = 3;

enum class Operation : std::uint8_t { broadcast, reduce, all_gather, reduce_scatter, all_reduce };
inline constexpr int operations = 5;

// The narrowest kind of hop on a path, nearest first; NCCL's letters behind it.
enum class PathType : std::uint8_t {
  local,           // LOC: the same GPU
  nvlink,          // NVL: NVLink, through NVSwitch or not
  nvlink_gpu,      // NVB: NVLink over another GPU
  c2c,             // C2C: the link between a CPU and a GPU of one module
  pcie_switch,     // PIX: one PCIe switch
  pcie_switches,   // PXB: several PCIe switches
  cpu_c2c,         // P2C: PCIe to the CPU, then C2C
  gpu_beside_nic,  // PXN: NVLink to the GPU beside the NIC, then PCIe
  pcie_host,       // PHB: the host bridge
  system,          // SYS: between sockets
};

// Compute capabilities from which generations are told apart: 90 for 9.0.
inline constexpr int ampere_capability = 80;
inline constexpr int hopper_capability = 90;
inline constexpr int blackwell_capability = 100;

enum class Cpu : std::uint8_t { intel, amd, mixed_x86, arm, power };

// What the search found for one shape: `channels` of them, each at `intra` in a node and `inter`
// across nodes, at the same time.
struct ChannelGraph {
  std::int64_t channels = 0;  // 0: the shape cannot be had
  Bandwidth intra{0};
  Bandwidth inter{0};
  PathType intra_path = PathType::nvlink;
  PathType inter_path = PathType::pcie_switch;
  bool same_channels = true;   // every channel visits the GPUs in the same order
  Seconds network_latency{0};  // that the NIC's plugin reports; 0 for InfiniBand and RoCE verbs
};

// What a network that reduces (InfiniBand SHARP) can do.
struct CollNet {
  bool all_gather = false;      // its plugin offers all-gather
  bool reduce_scatter = false;  // its plugin offers reduce-scatter
  std::int64_t heads = 0;       // GPUs of a node with a NIC of their own
};

struct Communicator {
  Version version = Version::v2_30;
  std::int64_t ranks = 2;
  std::int64_t nodes = 1;                // NVLink domains: an NVL72 rack is one node
  std::int64_t most_ranks_per_node = 2;  // on the fullest node
  int least_compute_capability = hopper_capability;
  int most_compute_capability = hopper_capability;
  Cpu cpu = Cpu::intel;
  bool nvswitch = true;
  bool network_offload = false;       // the NIC's plugin runs on the GPU: no PAT
  bool plain_tree = false;            // a node's tree is a chain with all NIC traffic at its head
  std::int64_t ring_channels = 0;     // thread blocks that a ring or tree runs on ("coll channels")
  std::int64_t network_channels = 2;  // for messages to a GPU of another node: message_channels.hpp
  ChannelGraph ring;
  ChannelGraph tree;
  ChannelGraph nvls;
  ChannelGraph collnet_direct;
  ChannelGraph collnet_chain;
  std::optional<CollNet> collnet;

  [[nodiscard]] double ranks_per_node() const {
    return static_cast<double>(ranks) / static_cast<double>(nodes);
  }
  // PAT walks the tree's channels, NVLSTree those of NVLS.
  [[nodiscard]] const ChannelGraph& graph(Algorithm algorithm) const;
};

// NVSwitch reduces.
[[nodiscard]] constexpr bool is_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
}

// Switches of the network reduce, and GPUs do in the node.
[[nodiscard]] constexpr bool is_collnet(Algorithm algorithm) {
  return algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
}

// As NCCL spells them, in logs and in NCCL_ALGO, NCCL_PROTO.
[[nodiscard]] std::string_view name_of(Algorithm algorithm);
[[nodiscard]] std::string_view name_of(Protocol protocol);
[[nodiscard]] std::string_view name_of(Operation operation);
// Upper or lower case alike, as NCCL reads them. Nothing for other words.
[[nodiscard]] std::optional<Algorithm> find_algorithm(std::string_view text);
[[nodiscard]] std::optional<Protocol> find_protocol(std::string_view text);
// The same; throw InputError with a suggestion.
[[nodiscard]] Algorithm parse_algorithm(std::string_view text, const Place& place);
[[nodiscard]] Protocol parse_protocol(std::string_view text, const Place& place);

}  // namespace shardsim::nccl
