// Python's regular expressions in PCRE2's words.
//
//   (?P<n>a|b)(?P=n)\Z   ->   (a|b)\g{1}\z
//   x{,3}\d$             ->   x{0,3}[0-9\p{Nd}]\Z
//
// The two languages look alike and differ in what the same text means, so the expression is read as
// Python 3.11 reads it (Lib/re/_parser.py) and written anew. What Python refuses is refused,
// whatever PCRE2 makes of it: \K, \h, \p{..}, (?|..), (?R), "a**", (?i) in the middle, a lookbehind
// of varying width. The text written expects PCRE2_UTF and a line feed as the only newline.
//
// Refused although Python takes them, since PCRE2 would answer something else or nothing:
// \N{NAME}, a surrogate, a backreference under IGNORECASE, more than 65535 repetitions, groups
// nested deeper than 200. Not imitated: (?a:...) at the very start, whose ASCII meaning of \W, \D
// and \S Python's search forgets when it looks for a place to start.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/glob.hpp"

namespace shardsim {

class RegexSyntaxError : public std::runtime_error {
 public:
  // `position` counts characters, not bytes, as Python does.
  RegexSyntaxError(const std::string& message, std::size_t position)
      : std::runtime_error(message), position_(position) {}

  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  std::size_t position_;
};

struct TranslatedRegex {
  std::string text;
  // Every text without a newline that the expression finds, or matches in full, is matched by these
  // globs; with `globs_suffice` no other text is. Most rules are such: "llm/.*/kernel".
  Glob search;
  Glob full_match;
  bool globs_suffice = false;
};

[[nodiscard]] TranslatedRegex translate_python_regex(std::string_view expression);

}  // namespace shardsim
