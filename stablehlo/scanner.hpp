// A cursor over MLIR text: skips blanks and // comments, knows the line it is on.
//
//   Scanner scanner("dims = [0, 2]", "a.mlir");
//   scanner.word() == "dims"   scanner.accept("=")   scanner.expect("[")   scanner.integer() == 0
//
// What does not fit is an InputError with file and line ("a.mlir: line 7: expected "]", found
// "x""). Complexity: every character is looked at a constant number of times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace shardsim::stablehlo {

class Scanner {
 public:
  // `text` must outlive the scanner and the views it hands out.
  Scanner(std::string_view text, std::string file, int first_line = 1)
      : text_(text), file_(std::move(file)), line_(first_line) {}

  // The next character after blanks and comments; '\0' at the end.
  [[nodiscard]] char peek();
  [[nodiscard]] bool at_end() { return peek() == '\0' && position_ >= text_.size(); }
  // True when `punctuation` comes next (not consumed).
  [[nodiscard]] bool next_is(std::string_view punctuation);
  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);
  // True when the word comes next and ends there.
  [[nodiscard]] bool next_is_word(std::string_view word);
  bool accept_word(std::string_view word);

  // Letters, digits, "_", "$" and ".", not beginning with a digit; empty when none comes next.
  [[nodiscard]] std::string_view try_word();
  [[nodiscard]] std::string_view word(std::string_view what);
  // After "%", "@", "^" or "#": digits may come first, and "-" inside.
  [[nodiscard]] std::string_view suffix_id(std::string_view what);
  // @name or @"name", without the "@".
  [[nodiscard]] std::string symbol();
  [[nodiscard]] bool next_is_digit();
  // A decimal integer with an optional sign.
  [[nodiscard]] std::int64_t integer(std::string_view what);
  // A number as it is written: decimal, with fraction and exponent, or hexadecimal.
  [[nodiscard]] std::string_view number();
  // A string literal with its escapes (\", \\, \n, \t, \22) resolved.
  [[nodiscard]] std::string string_literal();
  // "<" and everything up to its ">": the text between them. Brackets must pair up; "->" is no
  // bracket; strings are skipped.
  [[nodiscard]] std::string_view angle_body();
  // "(" to its ")", likewise.
  void skip_parentheses();

  [[nodiscard]] int line();
  [[nodiscard]] Place place();
  [[nodiscard]] const std::string& file() const { return file_; }
  [[noreturn]] void fail(std::string_view message, std::string_view suggestion = {});
  // expected WHAT, found ...
  [[noreturn]] void fail_expected(std::string_view what);

 private:
  void skip_blanks();
  void skip_string();
  [[nodiscard]] std::string_view balanced(char open);
  std::string_view text_;
  std::string file_;
  std::size_t position_ = 0;
  std::size_t counted_to_ = 0;  // line_ is the line of this position
  int line_ = 1;
};

// Nesting of regions, attributes and types: deeper text is refused before the stack is in danger.
inline constexpr int deepest_nesting = 200;

}  // namespace shardsim::stablehlo
