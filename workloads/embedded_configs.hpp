// The shipped model descriptions, configs/*.json, as text.
#pragma once

#include <vector>

#include "base/embedded_file.hpp"

namespace shardsim {

[[nodiscard]] const std::vector<EmbeddedFile>& embedded_configs();  // by family, then size

}  // namespace shardsim
