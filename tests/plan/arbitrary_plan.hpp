// Plans for tests: any plan that `verify` accepts, and one of known repetition.
#pragma once

#include "plan/plan.hpp"

namespace shardsim {

// To be called inside rc::check.
[[nodiscard]] Plan arbitrary_plan();

// `layers` times gather and matmul, then a loss; backward, last layer first: gather, matmul that
// also reads the forward matmul, reduce-scatter.
[[nodiscard]] Plan layered_plan(std::int32_t layers);

}  // namespace shardsim
