// Programs in a folder, as jax and XLA dump them, by the names of their modules:
//
//   module_0007.jit_step.sm_9.0_gpu_after_optimizations.txt   HloModule jit_step  -> "jit_step"
//   jax_ir0001_jit_loss_compile.mlir                          module @jit_loss    -> "jit_loss"
//
// Numbers in file names differ from run to run, names of modules do not. A module that was compiled
// several times is "jit_step", "jit_step #2", in the order of the files, whose numbers count
// as such. Of XLA's dumps those after
// optimizations are taken; buffer assignments, graphs and protocol buffers are passed over. What
// is neither HLO nor StableHLO is passed over as well.
#pragma once

#include <map>
#include <string>

namespace shardsim {

// Path by name. Throws InputError: no folder, no program in it.
[[nodiscard]] std::map<std::string, std::string> programs_in(const std::string& folder);

}  // namespace shardsim
