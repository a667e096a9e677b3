// What is wrong with an input, where, and what was probably meant. Thrown by every reader; only
// `main` catches it (exit code 3).
//
//   experiments/a.json: /mesh: unknown axis "modle", did you mean "model"?
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardsim {

struct Place {
  std::string file;     // as the user named it; "--set" or "command line" for flags
  std::string pointer;  // JSON pointer inside the file, or "line 3"; may be empty
  friend bool operator==(const Place&, const Place&) = default;
};

class InputError : public std::runtime_error {
 public:
  InputError(const Place& place, std::string_view message, std::string_view suggestion = {});
  [[nodiscard]] bool names_file() const { return names_file_; }

 private:
  bool names_file_;
};

// In a handler of `error`: throws it on, in `file` where its place names none.
[[noreturn]] void rethrow_in(const std::string& file, const InputError& error);

// This machine or build cannot do what was asked (no GPU, no peer): exit code 4.
class CannotRunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The nearest in edit distance (ties: begins with the word, listed first); where none is near, the
// shortest that has all of the word's parts, or all of whose parts it has: "dgx-b200" for "b200".
[[nodiscard]] std::string closest(std::string_view word,
                                  const std::vector<std::string>& candidates);

}  // namespace shardsim
