// An experiment's step, simulated and run: predicted beside measured.
#pragma once

#include <cstdint>
#include <functional>

#include "experiments/step_validation.hpp"
#include "validate/backends/backend.hpp"
#include "validate/step/execute.hpp"

namespace shardsim {

enum class RunPart : std::uint8_t { everything, collectives };

// What is to be run, and what it is predicted to take: the plan, or its collectives alone
// (collectives_alone.hpp), with streams laid one behind the other (serialize_streams.hpp) for
// devices that do not overlap them. Throws InputError, also for an experiment with a placement,
// which is the business of whoever starts the processes.
[[nodiscard]] Prediction predict_to_run(const Experiment& experiment, bool overlaps_streams,
                                        RunPart part = RunPart::everything);

// Runs it. All processes call it, with a plan that check_same_plan() has seen.
[[nodiscard]] StepValidation validate_step(const Prediction& prediction, Backend& backend,
                                           const Repeats& repeats,
                                           const std::function<void(int)>& begun = {});

// Where the processes are. All processes call it.
[[nodiscard]] RunOn run_on(Backend& backend);

}  // namespace shardsim
