// The shipped tables of kernels, kernels/*.json, as text.
#pragma once

#include <vector>

#include "base/embedded_file.hpp"

namespace shardsim {

[[nodiscard]] const std::vector<EmbeddedFile>& embedded_kernels();  // sorted by name

}  // namespace shardsim
