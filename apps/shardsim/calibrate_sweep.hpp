// calibrate SWEEP: a profile of what `validate --sweep` measured.
#pragma once

#include <optional>
#include <vector>

#include "command.hpp"
#include "experiments/device_sweep.hpp"
#include "output.hpp"

namespace shardsim {

// The operand, if it is a sweep. Throws UsageError for a sweep among other files.
[[nodiscard]] std::optional<DeviceSweep> given_sweep(const Given& given);
[[nodiscard]] int calibrate_sweep(const DeviceSweep& sweep, const Given& given,
                                  const std::vector<Output>& outputs);

}  // namespace shardsim
