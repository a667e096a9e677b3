// When each action of a schedule starts, in steps, on machines that do one thing at a time.
//
//   GPipe, 2 stages, 2 microbatches, every action one step:
//
//   step     0    1    2    3    4    5
//   rank 0  0F0  0F1   .    .   0B0  0B1         6 steps, each rank works in 4 of them:
//   rank 1   .   1F0  1F1  1B0  1B1   .          the bubble is 2 of 6
//
// An action starts when its rank is through with the one before and what it needs is done: a
// forward needs the forward of the stage before, a backward that of its own stage and the gradient
// of the stage after, a W its I. Overlapped pairs take the time of both, one after the other.
//
// With messages (messages.hpp) a send and a receive take `message` of their rank each, and a
// receive may start when its send does. With every duration 1 the steps are those of PyTorch's
// _simulate_comms_compute; without messages and with backward 2, W and I 1 each, those of the
// literature's drawings. Time is linear in the actions times the ranks at worst.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/schedule/messages.hpp"

namespace shardsim {

struct Durations {
  std::int32_t forward = 1;
  std::int32_t backward = 1;
  std::int32_t backward_input = 1;
  std::int32_t backward_weight = 1;
  std::int32_t optimizer = 1;
  std::int32_t message = 1;
};

struct Timetable {
  std::vector<std::vector<std::int64_t>> start;  // by rank and call
  std::vector<std::int64_t> busy;                // by rank
  std::int64_t steps = 0;                        // until the last rank is through

  [[nodiscard]] std::int64_t idle(std::size_t rank) const { return steps - busy[rank]; }
};

// How far each rank gets where not all get to their end.
struct Stuck {
  std::vector<std::size_t> next;  // call of each rank; its number of calls for one that is through
};
struct DryRun {
  Timetable timetable;
  std::optional<Stuck> stuck;
};
[[nodiscard]] DryRun dry_run(const PipelineShape& shape,
                             const std::vector<std::vector<Call>>& calls,
                             const Durations& durations);

// Of a schedule that verify() passes; without messages.
[[nodiscard]] Timetable dry_run(const PipelineSchedule& schedule, const Durations& durations);

}  // namespace shardsim
