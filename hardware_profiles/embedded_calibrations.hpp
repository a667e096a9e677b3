// The shipped calibrations, calibrations/*.json, as text.
#pragma once

#include <vector>

#include "base/embedded_file.hpp"

namespace shardsim {

[[nodiscard]] const std::vector<EmbeddedFile>& embedded_calibrations();  // sorted by name

}  // namespace shardsim
