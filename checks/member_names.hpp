// Names that differ in numbers only and have the same value, as one line; and back.
//
//   layers/0/w: P(x, None), ..., layers/7/w: P(x, None)      layers/{0-7}/w: P(x, None)
//   layers/0/w: P(None, None), layers/1/w, layers/2/w: P(x)   layers/0/w, layers/{1-2}/w
//
//   w{0-7}: P(x)                      w{{}0-7}: P(x)            a name that has braces itself
//
// A line holds exactly its members, so that nothing is lost and no two lines have one name. "{{}"
// stands for a brace of the name, where it would begin numbers or be taken for this sign.
#pragma once

#include <map>
#include <string>

#include "base/json_reader.hpp"

namespace shardsim {

using ValuesByName = std::map<std::string, std::string>;

[[nodiscard]] ValuesByName fold_members(const ValuesByName& values);
// Of an object of strings. Throws InputError: a name that is there twice, more than 1,000,000.
[[nodiscard]] ValuesByName read_members(const JsonReader& json);

}  // namespace shardsim
