// What XLA's TPU compiler makes of a collective, and the latency that its scheduler assigns.
//
// The compiler is closed. These rules were read off 5,380 collectives that libtpu 0.0.51 (jax
// 0.10.2, 2026-10) compiled ahead of time for v4, v5e, v5p and v6e; docs/tpu-collectives.md has
// how far they reproduce them. S = bytes, n = members, d = dimensions of the group, W = bytes per
// second of a link in one direction (slice.hpp); box, whole, closed, in order: group.hpp.
//
//   all-reduce, whole, d >= 2, no dimension of 2 on v5e and v6e
//     to 2 MiB (not v4)          RotatedPincerShort  StrategyND  d - (sizes differ) colors
//     sizes equal and <= 8       RotatedPincer       UniDirectionNDRingStrategy  2 d colors
//     else                       RotatedPincer       StrategyND                  d colors
//   all-reduce, else: one ring
//     to 8 KiB                   SinglePhaseRingSum
//     n <= 8, from 1 MiB         RotatedPincer       UniDirection1DRingStrategy  2 colors
//     to 2 MiB (not v4)          RotatedPincerShort  StrategyRing                1 color
//     else                       RotatedPincer       StrategyRing                1 color
//   all-gather
//     closed and in order, whole, 2-D or 3-D: 2DAllGatherOnMajorDim, 3DAllGatherOnMajorDim
//     the whole slice, 64 or more of v5e or v6e, below 32 MiB; whole, 3-D, n > 16: an all-reduce
//     else                       1DAllGatherNonMajorDim;
//                                with n > 8 1DAllGatherNonMajorDimImbalanced
//   reduce-scatter
//     of a minor dimension; whole 3-D; a whole square of v5e or v6e with sides over 2: an
//                                all-reduce and a slice
//     closed plane in order      StrategySubgroupND, 2 colors
//     else                       StrategyRing, 1 color; fused with its padding where the operand
//                                does not divide into spans (span.hpp)
//   all-to-all                   NetRouter with limited routing and n > 2, else AllToAll
//   collective-permute           asynchronous; with limited routing only a uniform shift
//
// Colors are rings that run at the same time, phases dimensions one after the other.
//
// The scheduler's latency has no term for hops or launches:
//
//   collective-permute           S / W
//   all-reduce                   2 S / (L W), L = 2 d over whole dimensions, else 2
//   all-gather                   S (1 - 1/n) / (L W), L = 4 with the 2-D algorithm, else 2; on
//                                v5e, where it is asynchronous, S / (L W)
//   all-to-all                   S (1 - 1/n) D / (2 W), D = longest dimension of the group; half of
//                                it where all its dimensions wrap; between cores one cycle
//   fused reduce-scatter         that of an all-reduce of the padded operand
//   reduce-scatter               one cycle
//
// Example: all-reduce of 64 MiB over the planes of v5p 4x4x4: UniDirectionNDRingStrategy, 4 colors,
// 2 phases, 2 * 64 MiB / (4 * 93.35 GB/s) = 359 us.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "plan/plan.hpp"
#include "sim/tpu/group.hpp"

namespace shardsim::tpu {

// The instruction that the compiler ends with.
enum class Instruction : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  fused_reduce_scatter,  // its all-reduce-scatter fusion
  all_to_all,
  collective_permute,
};

enum class Emitter : std::uint8_t {
  none,  // a permute
  single_phase_ring_sum,
  rotated_pincer_short,
  rotated_pincer,
  all_gather_1d,
  all_gather_1d_imbalanced,
  all_gather_2d,
  all_gather_3d,
  reduce_scatter_fusion,
  all_to_all,
  net_router,
};

enum class Strategy : std::uint8_t {
  none,
  ring,              // StrategyRing
  uni_direction_1d,  // UniDirection1DRingStrategy: a color for each direction of a ring
  nd,                // StrategyND
  uni_direction_nd,  // UniDirectionNDRingStrategy
  subgroup_nd,       // StrategySubgroupND
};

struct Request {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{0};               // of one device: the gathered result, else the operand
  bool major_dimension = true;  // gathered or scattered
  bool uniform_shift = false;   // of a permute: is_uniform_shift
};

struct Choice {
  Instruction instruction = Instruction::all_reduce;
  bool asynchronous = false;
  Emitter emitter = Emitter::none;
  Strategy strategy = Strategy::none;
  int colors = 0;  // 0 and 0 where the compiler names no strategy
  int phases = 0;
  Seconds scheduler_latency{0};

  // "RotatedPincerEmitter UniDirectionNDRingStrategy", "1DAllGatherNonMajorDim",
  // "asynchronous collective-permute"; with "as all-reduce: " where it is that for `kind`.
  [[nodiscard]] std::string describe(CollectiveKind kind) const;
};

// Nothing for a broadcast, and where the compiler refuses: with limited routing a group that is no
// box, other than a pair. The group has at least two members.
[[nodiscard]] std::optional<Choice> choose(const Slice& slice, const Group& group,
                                           const Request& request);

// As the compiler prints them: "all-reduce", "fusion:all-reduce-scatter"; "RotatedPincerEmitter";
// "StrategyND". Empty for none.
[[nodiscard]] std::string_view name_of(Instruction instruction);
[[nodiscard]] std::string_view name_of(Emitter emitter);
[[nodiscard]] std::string_view name_of(Strategy strategy);

}  // namespace shardsim::tpu
