// Whether a schedule can run, and what it holds while it does.
//
// verify() throws where one of these does not hold, naming rank and action:
//
//   every stage is on the rank the shape says, every microbatch in range
//   every stage runs every microbatch forward once, and backward once: B, or I and W
//   forward before backward, I before W; the optimizer of a stage after all of them, at most once
//   an overlapped pair is a forward and a backward that do not need one another
//   no two ranks wait for one another:
//
//     rank 0: 0B0 0F0      "rank 0, action 1: 0B0 before 0F0: a backward follows its forward"
//
//     rank 0: 0F1 0F0 0B0 0B1
//     rank 1: 1F0 1B0 1F1 1B1      runs: rank 1 waits until 0F0 is done
//
//     rank 0: 0F0 0B0 0F1 0B1
//     rank 1: 1F0 1F1 1B0 1B1      "deadlock: 0B0 on rank 0 waits for 1B0 of rank 1, where 1F1
//                                   comes first, which waits for 0F1 of rank 0"
//
// Held: a forward's activations, from it to the B or W of its microbatch (an I frees none, as the W
// may need them), an overlapped pair's forward beside its backward. They are PyTorch's activation
// slots (analyze_pipeline_activation_liveness); 1F1B holds min(microbatches, stages - rank).
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

// `place` is where the schedule comes from.
void verify(const PipelineSchedule& schedule, const Place& place);

// Most at a time, by rank. Of a schedule that verify() passes.
struct ActivationsHeld {
  std::vector<std::int32_t> forwards;  // of a stage and a microbatch
  // Microbatches with anything held, from their first forward on the rank to their last release.
  std::vector<std::int32_t> microbatches;

  friend bool operator==(const ActivationsHeld&, const ActivationsHeld&) = default;
};
[[nodiscard]] ActivationsHeld activations_held(const PipelineSchedule& schedule);

}  // namespace shardsim
