// What people are told of a compiled step beside its plan: specs of parameters and outputs,
// padding, notes and warnings.
#pragma once

#include "strategies/compile/passes.hpp"

namespace shardsim {

// Fills `compiled` beside the plan's programs, and the plan's subject, padding and notes.
void describe(Compilation& compilation);

}  // namespace shardsim
