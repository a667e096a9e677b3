// The characters of a Python regular expression one by one, and its small words: escapes, bounds,
// flags. A backslash and the character after it are one token.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/regex_set.hpp"

namespace shardsim {

struct RegexToken {
  char32_t c = 0;
  bool escaped = false;
  std::optional<char32_t> value = std::nullopt;  // of an escape inside a set, read with it

  friend bool operator==(const RegexToken& token, char32_t c) {
    return !token.escaped && token.c == c;
  }
  // Unescaped, and one of these.
  [[nodiscard]] bool is_any_of(std::u32string_view characters) const;
  [[nodiscard]] bool is_category() const;  // \d and its like
};

// Every error is a RegexSyntaxError.
class RegexReader {
 public:
  explicit RegexReader(std::string_view expression);

  [[nodiscard]] std::size_t position() const { return next_; }
  [[nodiscard]] std::optional<RegexToken> peek() const;
  void take();
  RegexToken take_or_fail();
  bool accept(char32_t c);
  [[noreturn]] void fail(const std::string& message) const;

  // The text up to `end`, which is taken too; in UTF-8, not empty.
  std::string until(char32_t end);
  void skip_comment();

  // The character that \x41, \101, \n, ... stand for; `letter` has been taken.
  char32_t escaped_character(char32_t letter);
  // \12: a group, or a character where three digits are octal. `digit` has been taken.
  struct OctalOrGroup {
    char32_t value;
    bool is_octal;
  };
  OctalOrGroup octal_or_group(char32_t digit);

  // The atom of a set; its "[" has been taken.
  std::string set(const RegexFlags& flags);

  // "2,3}" after "{"; false, and nothing is taken, when it is no repetition.
  bool bounds(std::int64_t& min, std::int64_t& max);
  // "i-s:" or "i)" with its first letter taken. False: they are for the whole expression.
  bool flags(RegexToken letter, RegexFlags& flags);

 private:
  // A token between brackets, an escape with all of its digits. `start`: where the set opened.
  RegexToken take_in_set(std::size_t start);
  char32_t digits(int base, int count, int least, char32_t value);
  void add_flag(RegexToken letter, bool on, RegexFlags& flags) const;

  std::vector<char32_t> text_;
  std::size_t next_ = 0;
};

}  // namespace shardsim
