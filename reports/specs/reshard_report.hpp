// A reshard as text, JSON (shardsim/reshard/1) and CSV: direct and the best other way side by side.
#pragma once

#include <string>

#include "base/text.hpp"
#include "experiments/reshard_experiment.hpp"

namespace shardsim {

[[nodiscard]] std::string reshard_text(const ReshardPrediction& prediction,
                                       std::size_t width = default_text_width);
[[nodiscard]] std::string reshard_json(const ReshardPrediction& prediction);
// One row per step and one per plan.
[[nodiscard]] std::string reshard_csv(const ReshardPrediction& prediction);

}  // namespace shardsim
