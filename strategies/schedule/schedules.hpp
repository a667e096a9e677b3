// The schedules there are, each a file pair and a row of the table in schedules.cpp.
//
//   make_schedule({.name = "1f1b", .ranks = 2, .microbatches = 3}, place)
//     rank 0: 0F0 0F1 0B0 0F2 0B1 0B2
//     rank 1: 1F0 1B0 1F1 1B1 1F2 1B2
//
// | name | stages per rank | from |
// |---|---|---|
// | gpipe | 1 | all forwards, all backwards |
// | 1f1b | 1 | PyTorch, Megatron, DeepSpeed |
// | interleaved-1f1b | any, looped | PyTorch, Megatron |
// | looped-bfs | any, looped | PyTorch; arXiv:2211.05953 |
// | zero-bubble | 1 | ZB-H1 of arXiv:2401.10241 |
// | zero-bubble-2p | 1 | ZB-H2 of arXiv:2401.10241 |
// | interleaved-zero-bubble | any, looped | PyTorch |
// | zbv | 2, as a V | PyTorch; arXiv:2401.10241, section 6 |
// | dualpipev | 2, as a V | PyTorch; DeepSeek's DualPipe |
//
// PyTorch's names of the same ("Interleaved1F1B", "ZBVZeroBubble", ...) are read too, in any case.
// Orders are those of PyTorch 2.15.0 and of Megatron-Core 0.20.0, to the action. Not here: the
// schedules that the zero-bubble paper's search makes from measured times (ZB-1p, ZB-2p; H1 and H2
// are what the paper draws by hand for the same memory), and DeepSeek's DualPipe with its two
// copies of the parameters.
//
// The two frameworks run the same orders but refuse different numbers: ScheduleLimits says whose
// rules hold.
// A number that a schedule cannot do is an InputError at its key that says what would do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

enum class ScheduleLimits : std::uint8_t { pytorch, megatron };

struct ScheduleRequest {
  std::string name;
  std::int32_t ranks = 1;
  std::int32_t virtual_stages = 1;  // stages per rank
  std::int32_t microbatches = 1;
  // Microbatches that a stage runs one behind another before the rank's next stage has its turn
  // (Megatron's microbatch_group_size_per_vp_stage). PyTorch chooses it itself; Megatron takes
  // `ranks` where nothing is said.
  std::optional<std::int32_t> microbatch_group = {};
  ScheduleLimits limits = ScheduleLimits::pytorch;
  // Of interleaved-1f1b: a forward and the backward behind it are overlapped, for which each rank
  // warms up with one forward more (Megatron-Core's combined 1F1B, pipeline_parallel/schedules.py,
  // get_pp_rank_microbatches of core 0.16).
  bool pairs = false;
};

struct ScheduleKind {
  std::string_view name;
  std::string_view pytorch_name;  // empty where PyTorch has none
  std::string_view words;
  StagePlacement placement;
  Receives receives;  // PyTorch's own loops for gpipe and 1f1b, else its lists
  // Stages per rank that it takes.
  std::int32_t fewest_stages;
  std::int32_t most_stages;
  // Stages per rank where nothing is said, as torchtitan has it (pipeline_parallel.py).
  [[nodiscard]] std::int32_t usual_stages() const { return most_stages == 1 ? 1 : 2; }
  // The order alone: numbers have been checked.
  PipelineSchedule (*make)(const ScheduleRequest& request, const Place& place);
};

// In the order of the table above.
[[nodiscard]] const std::vector<ScheduleKind>& schedule_kinds();
[[nodiscard]] const ScheduleKind& schedule_kind(std::string_view name, const Place& place);

// `place` is that of the object whose keys "schedule", "virtual_stages", ... the numbers are.
[[nodiscard]] PipelineSchedule make_schedule(const ScheduleRequest& request, const Place& place);

}  // namespace shardsim
