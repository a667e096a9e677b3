// Why a text is no JSON, in words that say what to do about it.
//
//   {"batch": 8,}         a comma before the closing "}": remove it
//   {batch: 8}            keys are in double quotes: "batch"
//   {"remat": None}       "None" is Python's: write null
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardsim {

struct SyntaxMistake {
  std::size_t at = 0;  // where in the text: of a comma too many, the comma
  std::string reason;
};

// `refused`: the byte at which a parser stops; the end of the text, where it ends too early. What
// is before its token is JSON so far, with comments.
[[nodiscard]] SyntaxMistake explain_syntax(std::string_view text, std::size_t refused);

// From 1, in bytes.
struct LineAndColumn {
  std::size_t line = 1;
  std::size_t column = 1;
};
[[nodiscard]] LineAndColumn line_and_column(std::string_view text, std::size_t at);

}  // namespace shardsim
