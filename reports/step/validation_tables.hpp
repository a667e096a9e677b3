// What a validation says, in tables and sentences for every format.
#pragma once

#include <string>

#include "experiments/step_validation.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {

// "tiny-llama train step, fsdp on data=4: predicted beside measured"
[[nodiscard]] std::string validation_title(const StepValidation& validation);
// "cpu-host, 4 processes on 1 host, Open MPI v4.1.4"
[[nodiscard]] std::string validation_subject(const StepValidation& validation);
// "the median of 20 steps, to 1.8 %"
[[nodiscard]] std::string measured_how(const StepValidation& validation);
// Step, communication and computation.
[[nodiscard]] Table validation_summary(const StepValidation& validation);
// Tasks of one kind and size together.
[[nodiscard]] Table validation_rows(const StepValidation& validation);
// The peak of every program by category; without rows where memory was not measured.
[[nodiscard]] Table validation_memory(const StepValidation& validation);

}  // namespace shardsim
