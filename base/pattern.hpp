// Regular expressions on tensor names, with the meaning they have in Python's `re` for str
// patterns: an expression is translated for PCRE2 (base/regex_syntax.hpp).
//
//   Pattern rule("llm/.*/kernel", place);
//   rule.search(name)      re.search: somewhere in the name
//   rule.full_match(name)  re.fullmatch: the whole name
//
// Cost: most rules are literal text with ".*" between and are answered without the engine. The
// engine backtracks, as Python's does, but gives up: (a+)+$ on a name of a's and a b takes
// exponential time, and here an InputError after about ten million steps (tenths of a second).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace shardsim {

// An expression that Python's `re` refuses (re.error), or that is not supported.
class PatternError : public InputError {
 public:
  PatternError(const Place& place, const std::string& message)
      : InputError(place, message), message_(message) {}

  [[nodiscard]] const std::string& message() const { return message_; }  // without the place

 private:
  std::string message_;
};

class Pattern {
 public:
  // Throws PatternError with the position when the expression is not valid.
  Pattern(std::string_view expression, const Place& place);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  // Both throw InputError when the engine gives up, and where it meets text that is not UTF-8 or
  // longer than 64 KiB.
  [[nodiscard]] bool search(std::string_view text) const;
  [[nodiscard]] bool full_match(std::string_view text) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace shardsim
