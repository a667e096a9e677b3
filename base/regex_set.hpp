// Characters and sets of characters of a Python regular expression, written for PCRE2.
//
// Python's classes are not those of PCRE2 in any mode: \s knows U+001C to U+001F, \d the decimal
// digits of every script, \w letters, numbers and "_" but no combining marks. IGNORECASE ties i to
// U+0130 and U+0131; under ASCII it leaves U+212A (Kelvin) out of k. So sets are written out.
#pragma once

#include <string>
#include <vector>

namespace shardsim {

struct RegexFlags {
  bool ascii = false;
  bool unicode = false;  // said so for the whole expression, which excludes `ascii` there
  bool ignore_case = false;
  bool multiline = false;
  bool dot_all = false;
  bool verbose = false;
};

// A character in UTF-8.
[[nodiscard]] std::string utf8(char32_t c);

// The atom that matches the character.
[[nodiscard]] std::string literal_atom(char32_t c, const RegexFlags& flags);

class RegexSet {
 public:
  explicit RegexSet(const RegexFlags& flags) : flags_(flags) {}

  void add(char32_t first, char32_t last);
  void add_category(char32_t name);  // one of d D s S w W
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::string atom(bool negated) const;

 private:
  void add_other_case(char32_t first, char32_t last);

  RegexFlags flags_;
  std::string items_;
  bool caseless_ = false;  // holds a character that PCRE2 is to fold
};

// The atom of \d, \w, ... outside of brackets.
[[nodiscard]] std::string category_atom(char32_t name, const RegexFlags& flags);

}  // namespace shardsim
