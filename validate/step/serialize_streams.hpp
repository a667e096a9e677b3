// A plan for devices that do one thing at a time, as a core of a CPU does, communication included.
//
// Every program has one stream with all its tasks in the order in which they started on a machine
// with streams, of several programs calls in the order in which they ended. Each finds what it
// waits for done; no other order is made up.
//
// Example: compute A C and communication B, which starts during A: A B C.
#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {

// `simulated`: of `plan`. The plan has passed verify(), and so does the result.
[[nodiscard]] Plan serialize_streams(const Plan& plan, const Result& simulated);

}  // namespace shardsim
