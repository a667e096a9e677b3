// Sizes of classes of text whose configurations lie within others' (text_config), and which files
// leave out where they are the class's defaults: Gemma 3 4B says neither heads nor vocabulary.
//
// Source: transformers 5.23.0, configuration_X.py of each.
#pragma once

#include <string_view>

#include "base/json.hpp"

namespace shardsim::models {

// Of the class that `type` names, within `holder` ("voxtral/text_config"), which may have defaults
// of its own: an object with each size under all of its spellings. Null where none are known.
[[nodiscard]] const Json* nested_defaults(std::string_view holder, std::string_view type);

}  // namespace shardsim::models
