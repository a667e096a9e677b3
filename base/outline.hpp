// A JSON document as an outline for people: a key to a line, what it holds under it.
//
//   {"blocks": [{"block": "head", "reads": ["x", "w"]}], "axes": []}
//
//   blocks
//     - block: head
//       reads: x, w
//   axes: none
//
// Lists of words stand in one line where they fit, else one to a line.
#pragma once

#include <cstddef>
#include <string>

#include "base/json_reader.hpp"

namespace shardsim {

[[nodiscard]] std::string outline(const Json& document, std::size_t width);

}  // namespace shardsim
