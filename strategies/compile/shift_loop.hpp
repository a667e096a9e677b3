// What the loop of stages that shift holds while its plan is written (emit_shifts.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "strategies/compile/value_buffers.hpp"

namespace shardsim {

using Carried = std::vector<BufferIndex>;  // of what passes from block to block; no_buffer: nothing

struct ShiftLoop {
  Carried inputs = {}, results_gradient = {};
  std::vector<Carried> made = {};  // by iterations: results, then gradients of inputs
  // What goes round beside the next iteration, by the iteration that it is of, and its last task.
  std::map<std::int64_t, Carried> late = {};
  TaskId late_task = no_task;
};

}  // namespace shardsim
