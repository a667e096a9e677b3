// Messages between given pairs, all at once.
#pragma once

#include <utility>

#include "sim/network/phases.hpp"

namespace shardsim::network {

// No rank sends or receives twice; pairs of a rank with itself move nothing. No phase without
// pairs.
[[nodiscard]] Phases permute(std::int64_t ranks,
                             const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs,
                             Bytes message);

}  // namespace shardsim::network
