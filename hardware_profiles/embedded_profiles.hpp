// The shipped profiles, profiles/*.json, as text.
#pragma once

#include <vector>

#include "base/embedded_file.hpp"

namespace shardsim {

[[nodiscard]] const std::vector<EmbeddedFile>& embedded_profiles();  // sorted by name

}  // namespace shardsim
