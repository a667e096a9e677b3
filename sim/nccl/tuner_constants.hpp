// The numbers of NCCL's tuner, each with its name. NVIDIA fitted them to measurements of its own;
// they belong to NCCL's time model and are no properties of one part.
//
// Source of all, unless said beside it: NVIDIA/nccl src/graph/tuning.cc, release 2.30.7 (@5067397,
// 2026-06), read 2026-11. Limits of releases are limits of our reading:
//   2.28  zhanglin496/nccl-2.28.3-1 @850a18f, a copy of 2.28.3 with comments
//   2.29  constants of NVLSTree from meta-pytorch/torchcomms comms/ncclx/v2_29 @eb9ddb7, a fork;
//         ring LL128 of Blackwell from NVIDIA's history, where the fork has 2.30's 40 GB/s already
#pragma once

#include <optional>
#include <vector>

#include "sim/nccl/communicator.hpp"

namespace shardsim::nccl {

struct ProtocolLatencies {
  Seconds ll, ll128, simple;
};

// One row of latencies. All but rings and trees know the Simple protocol only.
struct AlgorithmLatencies {
  ProtocolLatencies tree, ring;
  Seconds collnet_direct, collnet_chain, nvls, nvls_tree, pat;

  [[nodiscard]] Seconds of(Algorithm algorithm, Protocol protocol) const;
};

// Of one channel, by number of nodes: 1, 2, more (NCCL measured on 4).
struct ScaleLimits {
  Bandwidth one_node, two_nodes, more_nodes;

  [[nodiscard]] Bandwidth at(std::int64_t nodes) const;
};

// By compute capability: below 8.0, below 9.0, below 10.0, and from there on.
struct GenerationLimits {
  ScaleLimits volta, ampere, hopper, blackwell;

  [[nodiscard]] Bandwidth of(const Communicator& communicator) const;
};

struct TunerConstants {
  AlgorithmLatencies base;     // of every call
  AlgorithmLatencies nvlink;   // of a step inside a node, over NVLink
  AlgorithmLatencies pcie;     // of a step inside a node, over anything else
  AlgorithmLatencies network;  // of a step between nodes
  GenerationLimits ring_ll128;
  GenerationLimits tree_ll128;
  GenerationLimits tree;  // any protocol
  GenerationLimits nvls_tree;
};

[[nodiscard]] const TunerConstants& tuner_constants(Version version);

// The most that LL moves, over all channels: in one node by GPU, between nodes by CPU.
[[nodiscard]] Bandwidth ll_limit(const Communicator& communicator);

// What NVSwitch reductions reach of the links; 0 before Hopper.
[[nodiscard]] double nvls_efficiency(int compute_capability);

// A tree's all-reduce falls short of its model at medium sizes, as `factor` of its bandwidth says.
// From 512 MiB on (NVLSTree: 1 GiB) the factor is 1, below 64 B, too.
[[nodiscard]] double tree_size_factor(Algorithm algorithm, Protocol protocol, Bytes bytes);

// What one thread block of a ring over several nodes moves, at the most, in the Simple protocol;
// none of NCCL's constants. 16 blocks of H100s and H200s with 8 NICs of 50 GB/s stop at 324 to
// 329 GB/s over 2 and 10 nodes, 24 blocks (NCCL_MIN_CTAS) at 393
// (tests/measurements/collectives: h200_gcp_a3ultra_2n16g_*, h100_xxrjun_10n*,
// h100_gjaion_2n16g_ring). Nothing where no such table is known: Blackwell's 16 blocks reach 394
// (NVIDIA/nccl, issue 1801), and AWS's plugin, which is known by the latency that it reports, 370
// over 16 nodes of p5en, by an algorithm that its own tuner chose.
[[nodiscard]] std::optional<Bandwidth> ring_block_limit(const Communicator& communicator);

// Shares of the channels' bandwidth.
inline constexpr double tree_share = 0.92;        // all protocols
inline constexpr double plain_tree_share = 0.85;  // where all NIC traffic meets at one GPU
inline constexpr double tree_ll_share = 1 / 3.8;
inline constexpr double tree_ll128_share_in_node = 7.0 / 9.0;
inline constexpr double tree_ll128_share_across = 120.0 / 128.0;
inline constexpr double ring_ll_share = 0.5;      // 8 bytes of 16
inline constexpr double ring_ll128_share = 0.92;  // 120 bytes of 128 and a little more
inline constexpr double pat_share = 0.75;
inline constexpr double pat_latency_divisor = 3.5;
inline constexpr Seconds pat_latency_per_rank{2.8e-6};
inline constexpr double collnet_direct_share = 0.85;  // Hopper and later, all-reduce
inline constexpr double collnet_direct_network_share = 0.9;
inline constexpr Seconds collnet_direct_latency_per_peer{0.4e-6};
// Posting one message to the network, three times that in the Simple protocol.
inline constexpr Seconds network_post{1e-6};
inline constexpr Seconds network_post_amd{2e-6};
inline constexpr double network_posts_of_simple = 3;
// A multi-node ring's Simple all-reduce, from plateau_bytes for each rank and channel on, shows
// this many times its latency.
inline constexpr std::int64_t plateau_bytes = 64;
inline constexpr double plateau_before_ampere = 1.9;
inline constexpr double plateau = 1.4;
// Rings round fp8 once per step: with more ranks than this they are the last resort.
inline constexpr std::int64_t most_ranks_of_fp8_ring = 8;
inline constexpr double fp8_ring_penalty = 1024;
// NCCL_MAX_NVLS_ARITY, NCCL_MAX_DIRECT_ARITY + 1 (src/include/device.h).
inline constexpr std::int64_t most_nvls_ranks = 32;
inline constexpr std::int64_t most_collnet_ranks = 8;

}  // namespace shardsim::nccl
