// The machine that an experiment names, before it has a size.
#pragma once

#include "experiments/experiment.hpp"

namespace shardsim {

// With the experiment's calibrations in place of the machine's. Throws InputError.
[[nodiscard]] Profile profile_of(const Experiment& experiment);
// `profile`: of the machine that it is compiled for; null where none is given.
[[nodiscard]] CompiledStep compile_program(const ProgramStep& program, const Profile* profile);

}  // namespace shardsim
