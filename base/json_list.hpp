// JSON documents of which the most is one list, far longer than what is wanted of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json_reader.hpp"

namespace shardsim {

using TakeElement = std::function<void(const Json& element, std::size_t number)>;

// Parses text whose outermost object has a list of that name: its elements are handed over one by
// one, with their numbers, and not kept. Answers the rest. Errors are those of parse_json, but of a
// key given twice in an object the first counts: the text is foreign.
[[nodiscard]] Json parse_json_list(std::string_view text, const std::string& file,
                                   std::string_view list, const TakeElement& take);

}  // namespace shardsim
