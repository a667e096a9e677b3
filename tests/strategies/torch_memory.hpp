// Memory of real PyTorch (tests/golden/torch/README.md) beside that of a plan. The records know no
// time: storages come and go in the order of issue. So a plan is replayed in the order of its
// tasks.
//
// At the end of the forward and of the backward pass each category is within 1 % (or a thousandth
// of all); the peak within 3 %, but for what known_difference says.
#pragma once

#include "base/json.hpp"
#include "plan/plan.hpp"

namespace shardsim::test {

// Prints what differs by more.
[[nodiscard]] bool same_memory(const Json& record, const Plan& plan);

// The most that is there at once, in bytes.
[[nodiscard]] double replayed_peak(const Program& program);

}  // namespace shardsim::test
