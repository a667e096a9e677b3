// One self-contained page of a validation: every task as a point, predicted over measured on
// logarithmic axes, with the line where both agree; the tables; memory at the peak as bars.
#pragma once

#include <string>

#include "experiments/step_validation.hpp"

namespace shardsim {

[[nodiscard]] std::string validation_html(const StepValidation& validation);

}  // namespace shardsim
