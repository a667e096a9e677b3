// How many channels of which speed NCCL finds on a node: its graph search, for GPUs behind one
// NVLink switch with a NIC of their own each.
//
// Speeds come from a list per generation, fastest first. At each, the walk (channel_walk.hpp) lays
// as many channels as fit, under rules that relax step by step: channels alike, then not; balanced
// trees, then plain ones; NICs farther away; rings that leave by another NIC. What moves more is
// kept, and slower speeds are tried down to half of it. Then channels are doubled where they are
// fast and few, and each is tried faster.
//
//   NVLS is simpler: with k channels of speed s, k of the GPUs pull, and every GPU sends k s and,
//   if it pulls, s more: (k + 1) s <= NVLink.
//
// Where the network reduces (CollNet), every GPU with a NIC is a head of CollNetDirect: it has s of
// its NIC, and s / (n - 1) from and to each of the n - 1 others, who do the same for its sake when
// they are heads: with k heads s (n + k - 2) / (n - 1) <= NVLink, 2 s where all are. CollNetChain
// has plain trees, as many as there are rings. Both go faster in the node where they can, up to
// twice the speed of the NIC.
//
// Example, 8 H100s of one node, 370.8 GB/s: rings 6 at 60, as good at 40 or 30, doubled to 12
// at 30. NVLS 8 at 40, since 9 * 40 <= 370.8 and 9 * 50 is more. With a NIC of 50 GB/s each behind
// PCIe 5 (48), rings 8 at 48, in pairs: in by NIC 0 and out by NIC 7, and back.
//
// The results are those printed by NCCL where we have its print (tests/sim/nccl_graph_search_test).
// CollNet's are by its rules alone: no print of them is known to us. Not covered: nodes without
// such a switch, shared NICs, trees that must cross the host bridge.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/nccl/channel_walk.hpp"
#include "sim/nccl/communicator.hpp"

namespace shardsim::nccl {

struct NodeGraphs {
  ChannelGraph ring, tree, nvls;
  ChannelGraph collnet_direct, collnet_chain;  // no channels where the network does not reduce
  bool plain_tree = false;
  std::int64_t ring_channels = 0;  // thread blocks: twice the graph's channels, see the source
};

// Cost: up to half a million steps of the walk: 10 ms in one node, 60 ms over several, 0.3 s for
// odd numbers of GPUs that share PCIe switches. Keep the result. Two GPUs at least or several
// nodes, of Ampere or later if several. Nothing where channels must cross the host bridge.
[[nodiscard]] std::optional<NodeGraphs> search_graphs(const SwitchNode& node, bool several_nodes);

// What one channel may have, in bytes per second, fastest first.
[[nodiscard]] std::vector<std::int64_t> channel_speeds(int compute_capability, bool several_nodes);

// What happens to channels once they are found: those that are fast, and from Hopper on few, are
// doubled at half the speed.
[[nodiscard]] bool are_doubled(std::int64_t channels, Bandwidth speed, int compute_capability);

// Thread blocks that rings of so many channels run on: two each, and, between nodes and from Hopper
// on, four each where fewer than 8 fast ones were found (src/graph/connect.cc).
[[nodiscard]] std::int64_t ring_blocks(std::int64_t channels);
[[nodiscard]] std::int64_t blocks_between_nodes(std::int64_t blocks, Bandwidth speed,
                                                int compute_capability);

// Puts the graphs into the communicator.
void use_graphs(const NodeGraphs& graphs, Communicator& communicator);

}  // namespace shardsim::nccl
