// The order in which the stages of a rank take microbatches in the interleaved schedules: in
// groups, every stage of the rank once per group.
//
//   5 microbatches, 2 stages per rank, groups of 3
//   forwards   stage  0 0 0 1 1 1 0 0 1 1        backwards   stage  1 1 1 0 0 0 1 1 0 0
//         microbatch  0 1 2 0 1 2 3 4 3 4              microbatch  0 1 2 0 1 2 3 4 3 4
//
// Megatron's schedule table. With groups that divide the microbatches it is PyTorch's order, too.
// A rank then runs `warmup` forwards, after that a forward and a backward each, and the backwards
// that are left.
//
// Warmup: the (stages per rank - 1) x group forwards until the rank's last stage has its turn, and
// `per_hop` for every rank after it, and one where pairs are overlapped; at most all.
//
//   4 ranks, 2 stages each, groups of 4, per_hop 2:   10, 8, 6, 4
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/schedule/schedules.hpp"

namespace shardsim {

struct Turn {
  std::int32_t chunk = 0;  // 0 is the rank's first stage
  std::int32_t microbatch = 0;

  friend bool operator==(const Turn&, const Turn&) = default;
};

[[nodiscard]] std::vector<Turn> forward_turns(std::int32_t microbatches, std::int32_t chunks,
                                              std::int32_t group);

[[nodiscard]] std::int64_t warmup_forwards(const ScheduleRequest& request, std::int32_t group,
                                           std::int32_t per_hop, std::int32_t rank);

// When the gradients of weights are computed.
enum class WeightPass : std::uint8_t {
  with_input,  // in one backward pass, B
  late         // I at once, W `per_hop` microbatches later for every rank before this one
};

// Every rank's warmup, then a forward and a backward each while there are forwards, the backwards
// that are left, and the W that are still owed.
[[nodiscard]] PipelineSchedule schedule_of_turns(const ScheduleRequest& request, std::int32_t group,
                                                 std::int32_t per_hop, WeightPass weights);

// The group that PyTorch chooses: with rounds = max(1, microbatches / ranks), rounded down,
// microbatches / rounds. Refuses microbatches that the rounds do not divide.
[[nodiscard]] std::int32_t pytorch_group(const ScheduleRequest& request, const Place& place);

}  // namespace shardsim
