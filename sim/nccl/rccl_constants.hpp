// The numbers of RCCL's tuner for MI300X (gfx942), each with its name. AMD fitted them to
// measurements of its own, together: what one of them says alone, such as 320 us of a ring's step
// across nodes, is no property of a part.
//
// Source: ROCm/rccl src/graph/tuning.cc @9e22c79, baseLat and tuning_model_5, read 2026-11. An
// earlier release (@0cbce2a, 2.21.5, 2024-10) has the same but for LL128, which it leaves out, and
// the largest sizes of tree and ring in the Simple protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "sim/nccl/communicator.hpp"
#include "sim/nccl/tuner_constants.hpp"

namespace shardsim::nccl {

struct RcclLatencies {
  ProtocolLatencies tree, ring;
};

struct ProtocolShares {
  double ll, ll128, simple;
};
struct RcclShares {
  ProtocolShares tree, ring;
};

// By binary logarithm of the bytes over 64; the last for all sizes from 4 GiB on.
inline constexpr std::size_t rccl_sizes = 27;
using SizeFactors = std::array<double, rccl_sizes>;
struct ProtocolFactors {
  SizeFactors ll, ll128, simple;
};

// Sizes above `above`, up to `to`, in bytes.
struct SizeRange {
  std::int64_t above = 0;
  std::int64_t to = 0;
};
struct ProtocolRanges {
  SizeRange ll, ll128;
};

struct RcclConstants {
  RcclLatencies base;     // of every call
  RcclLatencies xgmi;     // of a step inside a node
  RcclLatencies network;  // of a step between nodes
  RcclShares two_nodes;   // of what a GPU's links have, over one or two nodes
  RcclShares more_nodes;
  ProtocolFactors tree;  // of the bandwidth
  ProtocolFactors ring;  // over several nodes
  // Over several nodes, what decides the protocol. Of the first two by bytes per rank.
  ProtocolRanges reduce_scatter, all_gather, all_reduce;
};

[[nodiscard]] const RcclConstants& rccl_constants();

[[nodiscard]] Seconds of(const RcclLatencies& latencies, Algorithm algorithm, Protocol protocol);
[[nodiscard]] double of(const RcclShares& shares, Algorithm algorithm, Protocol protocol);
// `bytes` in all.
[[nodiscard]] double of(const ProtocolFactors& factors, Protocol protocol, Bytes bytes);

// src/rccl_wrap.cc @00c78b7: a reduce-scatter in one node goes by LL up to so many bytes per rank.
inline constexpr std::int64_t rccl_reduce_scatter_ll_bytes = 352128;
// The same: over more than two nodes all-reduce goes by LL128 up to a size that many times larger.
inline constexpr double rccl_ll128_growth = 3.8;

}  // namespace shardsim::nccl
