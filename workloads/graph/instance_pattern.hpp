// Patterns over the names of what layers of one kind have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/pattern.hpp"

namespace shardsim {

// Is the pattern found in the name ("model.layers.{}.mlp") of every layer of `numbers`? Throws
// InputError if it is in that of some alone: layers of one kind are treated alike.
[[nodiscard]] bool found_in_all(const Pattern& pattern, const std::string& name,
                                const std::vector<std::int32_t>& numbers, const Place& place);

}  // namespace shardsim
