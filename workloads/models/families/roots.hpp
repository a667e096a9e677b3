// Full names of a description's modules under another root: "model.layers" as "led.layers", or as
// "layers" where a class has no head around them.
#pragma once

#include <string>

#include "workloads/models/spec.hpp"

namespace shardsim::models {

// `from` and `to` end with a dot or are empty; names that do not begin with `from` stay.
void replace_root(ModelSpec& spec, const std::string& from, const std::string& to);

}  // namespace shardsim::models
