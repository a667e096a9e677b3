// The section "workload" of an experiment; experiment.hpp lists its keys.
#pragma once

#include "base/json_reader.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {

// Throws InputError: an unknown key or value, a size beyond what can be counted. What a model makes
// of it is for build_workload.
void read_workload(const JsonReader& json, Experiment& experiment);
// As resolved: every key, what was left out with what it means.
[[nodiscard]] Json workload_to_json(const Experiment& experiment);

}  // namespace shardsim
