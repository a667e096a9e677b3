// validate --sweep: what collectives and kernels of many sizes take.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"
#include "output.hpp"
#include "validate/backends/backend.hpp"
#include "validate/step/execute.hpp"
#include "validate/sweep/run_sweep.hpp"

namespace shardsim {

void add_sweep_options(po::options_description& options);
[[nodiscard]] std::vector<std::string> sweep_formats();
// --only of a sweep. Throws UsageError, also for other options that are for what it leaves out.
[[nodiscard]] SweepPart read_sweep_part(const Given& given);
// All processes call it; the exit code.
[[nodiscard]] int sweep_on(Backend& backend, const Given& given, const Repeats& repeats,
                           const std::vector<Output>& outputs);

}  // namespace shardsim
