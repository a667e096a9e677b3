#include "sim/tpu/compiler_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "sim/tpu/span.hpp"

namespace shardsim::tpu {
namespace {

constexpr Bytes single_phase_up_to(8 * KiB);
constexpr Bytes short_up_to(2 * MiB);
constexpr Bytes two_colors_from(1 * MiB);
constexpr Bytes gathered_from(32 * MiB);  // less, over all of a flat slice, is summed
constexpr std::int64_t summed_over = 64;  // members and more
constexpr std::int64_t small_ring = 8;    // members, and chips of a dimension
constexpr std::int64_t small_cube = 16;   // members of a 3-D group that gathers without wraparound

constexpr int all_reduce_rounds = 2;

bool is_nd_ring(const Slice& slice, const Group& group) {
  if (!group.whole || group.dimensions.size() < 2) return false;
  return !slice.flat() || std::none_of(group.dimensions.begin(), group.dimensions.end(),
                                       [&](std::size_t i) { return slice.sizes.at(i) == 2; });
}

bool sides_equal(const Slice& slice, const Group& group) {
  return std::all_of(group.dimensions.begin(), group.dimensions.end(), [&](std::size_t i) {
    return slice.sizes.at(i) == slice.sizes.at(group.dimensions.front());
  });
}

// Over which a ring or rings of an all-reduce run, both directions counted.
int all_reduce_links(const Group& group) {
  const auto dimensions = static_cast<int>(group.dimensions.size());
  const bool all = group.whole_dimensions && (dimensions < 3 || group.whole);
  return all ? 2 * dimensions : 2;
}

double bytes_per_second(const Slice& slice) {
  const Clock clock = clock_of(slice.generation);
  return clock.hertz * clock.link_bytes_per_cycle;
}

Seconds one_cycle(const Slice& slice) { return Seconds(1 / clock_of(slice.generation).hertz); }

Seconds all_reduce_latency(const Slice& slice, const Group& group, Bytes bytes) {
  return Seconds(all_reduce_rounds * static_cast<double>(bytes.count()) /
                 (all_reduce_links(group) * bytes_per_second(slice)));
}

Choice nd_all_reduce(const Slice& slice, const Group& group, Bytes bytes) {
  const auto dimensions = static_cast<int>(group.dimensions.size());
  const bool equal = sides_equal(slice, group);
  Choice choice;
  choice.phases = dimensions;
  if (slice.generation != Generation::v4 && bytes <= short_up_to) {
    choice.emitter = Emitter::rotated_pincer_short;
    choice.strategy = Strategy::nd;
    choice.colors = equal ? dimensions : dimensions - 1;
    return choice;
  }
  const bool small = slice.sizes.at(group.dimensions.front()) <= small_ring;
  choice.emitter = Emitter::rotated_pincer;
  choice.strategy = equal && small ? Strategy::uni_direction_nd : Strategy::nd;
  choice.colors = equal && small ? 2 * dimensions : dimensions;
  return choice;
}

Choice one_ring_all_reduce(const Slice& slice, const Group& group, Bytes bytes) {
  Choice choice;
  if (bytes <= single_phase_up_to) {
    choice.emitter = Emitter::single_phase_ring_sum;
    return choice;
  }
  const bool two_colors = group.members <= small_ring && bytes >= two_colors_from;
  const bool is_short = !two_colors && slice.generation != Generation::v4 && bytes <= short_up_to;
  choice.emitter = is_short ? Emitter::rotated_pincer_short : Emitter::rotated_pincer;
  choice.strategy = two_colors ? Strategy::uni_direction_1d : Strategy::ring;
  choice.colors = two_colors ? 2 : 1;
  choice.phases = 1;
  return choice;
}

Choice all_reduce(const Slice& slice, const Group& group, Bytes bytes) {
  Choice choice = is_nd_ring(slice, group) ? nd_all_reduce(slice, group, bytes)
                                           : one_ring_all_reduce(slice, group, bytes);
  choice.instruction = Instruction::all_reduce;
  choice.scheduler_latency = all_reduce_latency(slice, group, bytes);
  return choice;
}

Emitter gather_emitter(const Slice& slice, const Group& group) {
  const bool closed_cube =
      group.dimensions.size() == dimensions && group.whole && group.closed && group.in_order;
  if (!slice.limited_routing() && group.is_closed_plane()) return Emitter::all_gather_2d;
  if (!slice.limited_routing() && closed_cube) return Emitter::all_gather_3d;
  return group.members <= small_ring ? Emitter::all_gather_1d : Emitter::all_gather_1d_imbalanced;
}

Choice all_gather(const Slice& slice, const Group& group, Bytes bytes) {
  const Emitter emitter = gather_emitter(slice, group);
  const bool several = emitter == Emitter::all_gather_2d || emitter == Emitter::all_gather_3d;
  const bool whole_slice = group.whole && group.members == slice.chips() * slice.devices_per_chip;
  const bool summed =
      slice.flat()
          ? whole_slice && group.members >= summed_over && bytes < gathered_from
          : group.whole && group.dimensions.size() == dimensions && group.members > small_cube;
  if (!several && summed) return all_reduce(slice, group, bytes);
  Choice choice;
  choice.instruction = Instruction::all_gather;
  choice.emitter = emitter;
  choice.asynchronous = slice.generation == Generation::v5e;
  const int links = emitter == Emitter::all_gather_2d ? 4 : 2;
  const auto members = static_cast<double>(group.members);
  const double received = choice.asynchronous ? 1 : 1 - 1 / members;
  choice.scheduler_latency =
      Seconds(static_cast<double>(bytes.count()) * received / (links * bytes_per_second(slice)));
  return choice;
}

Choice reduce_scatter(const Slice& slice, const Group& group, const Request& request) {
  const std::size_t sides = group.dimensions.size();
  const bool cube = sides == dimensions && group.whole;
  const bool square =
      slice.flat() && sides == 2 && is_nd_ring(slice, group) && sides_equal(slice, group);
  if (!request.major_dimension || cube || square) return all_reduce(slice, group, request.bytes);
  const bool plane = group.is_closed_plane() && !slice.limited_routing();
  Choice choice;
  choice.emitter = Emitter::reduce_scatter_fusion;
  choice.strategy = plane ? Strategy::subgroup_nd : Strategy::ring;
  choice.colors = plane ? 2 : 1;
  choice.phases = choice.colors;
  const std::int64_t ring = plane ? slice.sizes.at(group.dimensions.front()) : group.members;
  const Spans spans = cut_into_spans(slice.generation, request.bytes, group.members, ring);
  choice.instruction = spans.even ? Instruction::reduce_scatter : Instruction::fused_reduce_scatter;
  choice.scheduler_latency =
      spans.even ? one_cycle(slice) : all_reduce_latency(slice, group, spans.padded);
  return choice;
}

Seconds all_to_all_latency(const Slice& slice, const Group& group, Bytes bytes) {
  if (group.dimensions.empty()) return one_cycle(slice);
  std::int64_t longest = 1;
  bool wraps = true;
  for (const std::size_t i : group.dimensions) {
    longest = std::max(longest, slice.sizes.at(i));
    wraps = wraps && slice.wraps.at(i);
  }
  const double sent =
      static_cast<double>(bytes.count()) * (1 - 1 / static_cast<double>(group.members));
  const double crossings = static_cast<double>(longest) / (wraps ? 4 : 2);
  return Seconds(sent * crossings / bytes_per_second(slice));
}

Choice all_to_all(const Slice& slice, const Group& group, Bytes bytes) {
  Choice choice;
  choice.instruction = Instruction::all_to_all;
  choice.emitter =
      slice.limited_routing() && group.members > 2 ? Emitter::net_router : Emitter::all_to_all;
  choice.scheduler_latency = all_to_all_latency(slice, group, bytes);
  return choice;
}

Choice permute(const Slice& slice, const Group& group, const Request& request) {
  Choice choice;
  choice.instruction = Instruction::collective_permute;
  choice.asynchronous = !slice.limited_routing() || group.members == 2 || request.uniform_shift;
  choice.scheduler_latency =
      Seconds(static_cast<double>(request.bytes.count()) / bytes_per_second(slice));
  return choice;
}

Instruction own_instruction(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return Instruction::all_reduce;
    case CollectiveKind::all_gather:
      return Instruction::all_gather;
    case CollectiveKind::reduce_scatter:
      return Instruction::reduce_scatter;
    case CollectiveKind::all_to_all:
      return Instruction::all_to_all;
    case CollectiveKind::collective_permute:
    case CollectiveKind::broadcast:
      break;
  }
  return Instruction::collective_permute;
}

}  // namespace

std::optional<Choice> choose(const Slice& slice, const Group& group, const Request& request) {
  assert(group.members >= 2);
  if (request.kind == CollectiveKind::broadcast) return std::nullopt;
  if (slice.limited_routing() && !group.box && group.members > 2) return std::nullopt;
  switch (request.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce(slice, group, request.bytes);
    case CollectiveKind::all_gather:
      return all_gather(slice, group, request.bytes);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter(slice, group, request);
    case CollectiveKind::all_to_all:
      return all_to_all(slice, group, request.bytes);
    case CollectiveKind::collective_permute:
      return permute(slice, group, request);
    case CollectiveKind::broadcast:
      break;
  }
  return std::nullopt;
}

std::string Choice::describe(CollectiveKind kind) const {
  if (instruction == Instruction::collective_permute) {
    return fmt::format("{}synchronous permute", asynchronous ? "a" : "");
  }
  const bool itself =
      instruction == own_instruction(kind) ||
      (instruction == Instruction::fused_reduce_scatter && kind == CollectiveKind::reduce_scatter);
  std::string text = itself ? "" : fmt::format("as {}: ", name_of(instruction));
  text += name_of(emitter);
  if (strategy != Strategy::none) text += fmt::format(" {}", name_of(strategy));
  return text;
}

std::string_view name_of(Instruction instruction) {
  constexpr std::array<std::string_view, 6> names = {"all-reduce",     "all-gather",
                                                     "reduce-scatter", "fusion:all-reduce-scatter",
                                                     "all-to-all",     "collective-permute"};
  return names.at(static_cast<std::size_t>(instruction));
}

std::string_view name_of(Emitter emitter) {
  constexpr std::array<std::string_view, 11> names = {
      "",
      "SinglePhaseRingSumEmitter",
      "RotatedPincerShortEmitter",
      "RotatedPincerEmitter",
      "1DAllGatherNonMajorDim",
      "1DAllGatherNonMajorDimImbalanced",
      "2DAllGatherOnMajorDim",
      "3DAllGatherOnMajorDim",
      "SingleInputAllReduceScatterFusion",
      "AllToAllEmitter",
      "NetRouterEmitter",
  };
  return names.at(static_cast<std::size_t>(emitter));
}

std::string_view name_of(Strategy strategy) {
  constexpr std::array<std::string_view, 6> names = {"",
                                                     "StrategyRing",
                                                     "UniDirection1DRingStrategy",
                                                     "StrategyND",
                                                     "UniDirectionNDRingStrategy",
                                                     "StrategySubgroupND"};
  return names.at(static_cast<std::size_t>(strategy));
}

}  // namespace shardsim::tpu
