// What people are told of a step with stages.
#pragma once

#include <string>
#include <vector>

#include "strategies/compile/passes.hpp"

namespace shardsim {

// Nothing of a step without.
[[nodiscard]] std::vector<std::string> stage_warnings(const Compilation& compilation);

}  // namespace shardsim
