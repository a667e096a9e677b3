// torchtitan's models by name and flavor, as an experiment has a model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/facts.hpp"

namespace shardsim {

// Throws InputError at the fact "arg.flavor" or "arg.name", with those that are known; notes say
// what of a flavor is not planned.
[[nodiscard]] Json torchtitan_model(const Facts& facts, std::vector<std::string>& notes);
// Sets "arg.name" and "arg.flavor" of the flavor that has this config.json; InputError at `place`
// where none has.
void add_torchtitan_flavor(const Json& config, const Place& place, Facts& facts);

}  // namespace shardsim
