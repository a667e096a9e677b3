// Lays channels on a node whose GPUs hang on one NVLink switch, in the order and with the patience
// of NCCL's search (NVIDIA/nccl src/graph/search.cc, releases 2.28 to 2.30, read 2026-11).
//
// The walk goes depth first: from a GPU, or from a NIC when there are several nodes, to a neighbour
// by number, until the channel is whole; then the next channel. Every hop takes the channel's speed
// from the links it uses. It stops when it has as many channels as it may have, or after a number
// of steps: what it found until then counts, so that the result can be less than what fits.
//
//   ring           NIC, all GPUs, NIC (one node: back to the first GPU)
//   balanced tree  NIC, a chain of all GPUs; the first two go back to the NIC, half the speed each
//   plain tree     the same, the first alone goes back
//
// A GPU reaches its own NIC and those on its PCIe switch (PIX); NICs beside other GPUs over NVLink
// and those GPUs (PXN). Trees do not use the latter, because nothing returns that way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/nccl/communicator.hpp"

namespace shardsim::nccl {

// One node as a communicator uses it.
struct SwitchNode {
  std::int64_t gpus = 8;  // ranks on it, numbered from a PCIe switch's first
  int compute_capability = 90;
  Bandwidth nvlink{0};  // of a GPU to the switch, each way, as NCCL counts it (describe.hpp)
  // Used when there are several nodes. Every GPU has a NIC of its own.
  Bandwidth pcie{0};  // GPU to PCIe switch, PCIe switch to NIC, as NCCL counts it
  Bandwidth nic{0};   // 50 GB/s for 400 Gbit/s
  std::int64_t gpus_per_pcie_switch = 1;
  Seconds nic_latency{0};
  bool network_reduces = false;  // CollNet's graphs are wanted, too
};

enum class Shape : std::uint8_t { ring, balanced_tree, plain_tree };

// Speeds in bytes per second: whole numbers, so that links add up exactly.
struct WalkRules {
  Shape shape = Shape::ring;
  std::int64_t intra = 0;
  std::int64_t inter = 0;
  std::int64_t fewest = 1;  // channels, to count as a result
  std::int64_t most = 1;
  bool same_channels = true;  // every channel in the first one's order
  bool cross_nics = false;    // a channel may leave by another NIC than it came by
  PathType farthest = PathType::pcie_switch;
};

struct Placed {
  std::int64_t channels = 0;
  WalkRules rules;  // under which they were placed
};

class ChannelWalk {
 public:
  ChannelWalk(const SwitchNode& node, bool several_nodes);

  // Replaces `best` by what moves more. Returns the steps left of `budget`, -1 when `most` channels
  // were placed.
  std::int64_t run(const WalkRules& rules, std::int64_t budget, Placed& best);

 private:
  enum class Order : std::uint8_t { by_number, as_before, free };
  // What is left of a channel to do.
  struct Plan {
    int back_to_nic = -1;    // the position whose GPU goes back to a NIC, -1: none
    int back_to_first = -1;  // the position whose GPU goes back to the first
    Order order = Order::free;
  };
  struct Channel {
    std::vector<int> gpus;
    std::vector<bool> used;
    int first_nic = -1;
    int last_nic = -1;
  };
  // What a hop uses of links_: two links, or four over another GPU.
  struct Path {
    std::array<std::size_t, 4> links{};
    std::size_t count = 0;
  };

  // Where a channel may go next; in the innermost loop, so without memory of its own.
  struct Hops {
    std::array<int, 2> gpus{};
    std::size_t count = 0;
    void add(int gpu) { gpus[count++] = gpu; }
  };

  [[nodiscard]] Plan plan_of(Order order) const;
  void next_channel();
  void start_at_nic(int nic);
  void start_at_gpu(int gpu, Order order);
  void enter(int gpu, int position, const Path& path, std::int64_t speed, const Plan& plan);
  void visit(int gpu, int position, const Plan& plan);
  void leave_by_nic(int gpu, int position, const Plan& plan);
  void go_on(int gpu, int position, const Plan& plan);
  void channel_done();

  [[nodiscard]] Hops neighbours(int gpu) const;
  [[nodiscard]] std::vector<int> nics_of(int gpu) const;
  [[nodiscard]] bool may_leave_by(int nic, int position) const;
  [[nodiscard]] bool beside(int gpu, int nic) const;
  [[nodiscard]] Path path_to_gpu(int from, int to) const;
  [[nodiscard]] Path path_to_nic(int gpu, int nic) const;
  [[nodiscard]] Path path_from_nic(int nic, int gpu) const;
  bool take(const Path& path, std::int64_t speed);
  void give(const Path& path, std::int64_t speed);

  int gpus_;
  int gpus_per_pcie_switch_;
  bool several_nodes_;
  std::vector<std::int64_t> links_;     // what is left of each
  std::vector<std::int64_t> nic_rate_;  // what is left of each
  std::vector<Channel> channels_;       // done and under way
  WalkRules rules_;
  std::int64_t steps_ = 0;
  Placed* best_ = nullptr;
};

}  // namespace shardsim::nccl
