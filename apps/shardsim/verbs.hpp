// The verbs of the program, in the order in which help lists them.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace shardsim {

[[nodiscard]] std::vector<Verb> all_verbs();
// Throws UsageError, with a suggestion, where there is no such verb.
[[nodiscard]] Verb find_verb(const std::string& name);

}  // namespace shardsim
