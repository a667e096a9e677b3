// Literal text with gaps: what must stand at the start, then in this order, and at the end.
//
//   {"encoder/", "/kernel"} is the shell's encoder/*/kernel; {"a"} is the text "a" and no other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardsim {

struct Glob {
  std::vector<std::string> pieces;  // at least one
  [[nodiscard]] bool matches(std::string_view text) const;
};

}  // namespace shardsim
