// One self-contained page of a collective: time and bus bandwidth over size on logarithmic axes,
// what was measured as points, and the table.
#pragma once

#include <string>

#include "experiments/collective_experiment.hpp"

namespace shardsim {

[[nodiscard]] std::string collective_html(const CollectivePrediction& prediction);

}  // namespace shardsim
