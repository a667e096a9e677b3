// A shell script cut into words and operators, and a word's expansion.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/formats/shell_script.hpp"

namespace shardsim {

struct ShellToken {
  enum class Kind { word, array, operation, newline };
  Kind kind = Kind::word;
  std::string text;  // with its quotes; of an array "NAME=" or "NAME+="
  int line = 0;
  std::vector<ShellToken> elements = {};  // of an array
};

// Throws InputError: a quote or bracket that is not closed.
[[nodiscard]] std::vector<ShellToken> shell_tokens(std::string_view text, const std::string& file);

// What the word comes to; several words, or none, where it is not quoted. An unset variable is
// "$NAME" as `keeps_unset`, else nothing.
[[nodiscard]] std::vector<ShellWord> expand(const ShellToken& word, const ShellScript& script,
                                            bool keeps_unset);

}  // namespace shardsim
