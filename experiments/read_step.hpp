// What the section "workload" of an experiment says of the step; experiment.hpp lists its keys.
#pragma once

#include "base/json_reader.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

// Throws InputError: an unknown value, a size beyond what can be counted. What a model makes of it
// is for build_step.
[[nodiscard]] Step read_step(const JsonReader& workload);
// Every key, what was left out with what it means; reads back as the same step.
[[nodiscard]] Json step_to_json(const Step& step);

}  // namespace shardsim
