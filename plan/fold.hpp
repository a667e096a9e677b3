// The repetition in a program's tasks, found by looking at them: consecutive stretches that do the
// same for one layer after the other.
//
//   gather 0, matmul 0, gather 1, matmul 1, gather 2, matmul 2, loss
//     -> {first 0, length 2, repeats 3}, {first 6, length 1, repeats 1}
//
// Two tasks do the same when everything but the layer is equal, the layers of all tasks of a
// stretch move by the same step (+1, -1, or more where kinds of layers take turns; tasks outside
// layers stay outside), and their
// dependencies correspond: the same task, the task one stretch later, or the same task of the
// layer that is one step on. Likewise for microbatches.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace shardsim {

struct Section {
  TaskId first = 0;
  TaskId length = 1;         // tasks of one repetition
  std::int64_t repeats = 1;  // first + length * repeats is where the next section begins
  friend bool operator==(const Section&, const Section&) = default;
};

// Sections cover all tasks in order. Cost: about linear in tasks and dependencies.
[[nodiscard]] std::vector<Section> fold(const Program& program);
// For every task the one that stands for it: itself, or its counterpart in the first repetition.
[[nodiscard]] std::vector<TaskId> representatives(const Program& program,
                                                  const std::vector<Section>& sections);

}  // namespace shardsim
