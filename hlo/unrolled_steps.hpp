// The instructions that a walk over every computation passes, loops and calls multiplied out: known
// before the walk begins.
#pragma once

#include "hlo/module.hpp"

namespace shardsim {

[[nodiscard]] double unrolled_steps(const HloModule& module);

}  // namespace shardsim
