// Who sends to whom in a collective-permute.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace shardsim {

// Every device with the next of its group, for a permute that names axes or groups but no pairs;
// else its pairs.
[[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> permute_pairs(
    const Mesh& mesh, const Collective& collective);

}  // namespace shardsim
