// What the buffers of a program take of a real device when they come and go as in the
// simulated step. No task runs: it is memory that is measured.
//
// Order: that of sim/step/memory.hpp. At one moment frees come before allocations, and what is
// taken is looked at when all changes of the moment are done. Of one moment, buffers come in the
// order of the plan.
//
// A category gets what the use of the device grew by when its buffers were allocated, until they
// are freed. Where buffers share a granule (a page), the first pays for it, and those who are left
// when it is gone pay nothing: that is in the peak, but in no category.
//
// Example, granules of 4 B: 3 B of parameters, 5 B of an activation: 4 and 8 B, the peak 12.
#pragma once

#include <array>
#include <vector>

#include "base/units.hpp"
#include "plan/plan.hpp"
#include "sim/step/simulate.hpp"
#include "validate/backends/device_memory.hpp"

namespace shardsim {

struct MeasuredMemory {
  Bytes peak{0};                                       // of what is in use; the first of equal ones
  std::array<Bytes, buffer_categories> by_category{};  // at the peak
  Bytes reserved{0};                                   // the most
};

// The memory holds no buffers yet; those that live beyond the step stay in
// it. Throws CannotRunError when it is short.
[[nodiscard]] MeasuredMemory measure_memory(const Program& program, DeviceMemory& memory);

}  // namespace shardsim
