// The verbs of the program, in the order in which help lists them.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace shardsim {

// One in each file of the name.
[[nodiscard]] Verb run_verb();
[[nodiscard]] Verb compare_verb();
[[nodiscard]] Verb plan_verb();
[[nodiscard]] Verb model_verb();
[[nodiscard]] Verb specs_verb();
[[nodiscard]] Verb reshard_verb();
[[nodiscard]] Verb profiles_verb();
[[nodiscard]] Verb collective_verb();
[[nodiscard]] Verb calibrate_verb();
[[nodiscard]] Verb validate_verb();
[[nodiscard]] Verb import_verb();
[[nodiscard]] Verb hlo_verb();
[[nodiscard]] Verb kernel_verb();
[[nodiscard]] Verb check_verb();
[[nodiscard]] Verb completion_verb();
[[nodiscard]] Verb man_verb();

[[nodiscard]] std::vector<Verb> all_verbs();
// Throws UsageError, with a suggestion, where there is no such verb.
[[nodiscard]] Verb find_verb(const std::string& name);

}  // namespace shardsim
