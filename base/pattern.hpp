// Regular expressions on tensor names, with the meaning they have in Python's `re` for str
// patterns (PCRE2 in UTF mode with Unicode classes). `search` finds a match anywhere in the name.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace shardsim {

class Pattern {
 public:
  // Throws InputError with the position when the expression is not valid.
  Pattern(std::string_view expression, const Place& place);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  [[nodiscard]] bool search(std::string_view text) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace shardsim
