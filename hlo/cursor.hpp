// A cursor over HLO text: bracketed values, strings and comments are stepped over as wholes, so
// that a reader takes only the pieces it understands.
//
//   HloCursor at("channel_id=1, replica_groups={{0,1},{2,3}}, metadata={op_name=\"a}\"}");
//   at.value()  "channel_id=1"     up to a comma or newline outside brackets and strings
//
// Cost: one pass over the bytes, nothing is copied. Errors: InputError with file and line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardsim {

// The text that views are taken from, for places in messages.
struct HloSource {
  std::string_view text;
  std::string file;

  // Throws InputError at the line where `where` begins (a view into `text`).
  [[noreturn]] void fail(std::string_view where, std::string_view message) const;
};

class HloCursor {
 public:
  explicit HloCursor(std::string_view text, std::size_t position = 0)
      : text_(text), position_(position) {}

  [[nodiscard]] bool at_end() const { return position_ >= text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[position_]; }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(position_); }

  void advance(std::size_t count = 1) { position_ += count; }
  void skip_blanks();  // spaces, tabs and /* comments */ of one line
  void skip_space();   // the same and line ends, and // comments
  void skip_line();    // to behind the next line end
  [[nodiscard]] bool accept(char c);
  [[nodiscard]] bool accept(std::string_view word);

  // Letters, digits and _ . - of a name, without a leading %.
  [[nodiscard]] std::string_view name();
  // Up to a comma, a blank where `to_blank`, a line end or a closing bracket, all outside brackets
  // and strings. An unclosed bracket or string reaches to the end of the text.
  [[nodiscard]] std::string_view value(bool to_blank = false);
  // From an opening bracket to behind its closing one.
  [[nodiscard]] std::string_view bracketed();

 private:
  void skip_string();
  std::string_view text_;
  std::size_t position_;
};

// "{a, {b, c}}", "(a, b)" or "a, b": the parts between commas outside brackets, without blanks and
// comments around.
[[nodiscard]] std::vector<std::string_view> split_list(std::string_view text);
[[nodiscard]] std::string_view without_brackets(std::string_view text);
[[nodiscard]] std::string_view trim_blanks(std::string_view text);
// The value of `key` in "key=value, other=value"; empty when it is not there.
[[nodiscard]] std::string_view find_attribute(std::string_view attributes, std::string_view key);

}  // namespace shardsim
