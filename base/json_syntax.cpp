#include "base/json_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

enum class Expected { value, key, colon, comma, end };

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' ||
         c == '.';
}
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Behind spaces and comments.
std::size_t skip_blank(std::string_view text, std::size_t at) {
  constexpr std::string_view mark = "\xef\xbb\xbf";  // of the byte order
  if (at == 0 && text.starts_with(mark)) at = mark.size();
  while (at < text.size()) {
    if (is_space(text[at])) {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
    } else {
      break;
    }
  }
  return at;
}

// Behind the closing quote of the string that begins at `at`; the end of the text without one.
std::size_t skip_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

// Behind the token that begins at `at`.
std::size_t skip_token(std::string_view text, std::size_t at) {
  if (text[at] == '"') return skip_string(text, at);
  return at + std::max<std::size_t>(word_at(text, at).size(), 1);
}

// true, false, null or a number, to its end.
bool is_plain_value(std::string_view word) { return Json::accept(word); }

// What a parser has seen of JSON before the token that holds the byte `refused`.
class Seen {
 public:
  Seen(std::string_view text, std::size_t refused) : text_(text) {
    while ((begin_ = skip_blank(text, begin_)) < text.size()) {
      const std::size_t end = skip_token(text, begin_);
      if (end > refused) return;
      // A word that breaks off is refused behind its end.
      const bool breaks_off = end == refused && end < text.size() && is_word(text[begin_]);
      if (breaks_off && !is_plain_value(text.substr(begin_, end - begin_))) return;
      take(begin_, end);
      last_ = begin_;
      begin_ = end;
    }
  }

  [[nodiscard]] std::size_t begin() const { return begin_; }  // of that token

  [[nodiscard]] Expected expected() const { return expected_; }
  [[nodiscard]] std::optional<std::size_t> last() const { return last_; }
  [[nodiscard]] std::optional<std::size_t> open() const {
    return open_.empty() ? std::nullopt : std::optional(open_.back());
  }
  [[nodiscard]] std::string_view key() const { return key_; }

 private:
  void close() {
    if (!open_.empty()) open_.pop_back();
    expected_ = open_.empty() ? Expected::end : Expected::comma;
  }

  void take(std::size_t at, std::size_t end) {
    const char c = text_[at];
    if (c == '{' || c == '[') {
      open_.push_back(at);
      expected_ = c == '{' ? Expected::key : Expected::value;
    } else if (c == '}' || c == ']') {
      close();
    } else if (c == ':') {
      expected_ = Expected::value;
    } else if (c == ',') {
      expected_ = !open_.empty() && text_[open_.back()] == '{' ? Expected::key : Expected::value;
    } else if (expected_ == Expected::key) {
      key_ = text_.substr(at, end - at);
      expected_ = Expected::colon;
    } else {
      expected_ = open_.empty() ? Expected::end : Expected::comma;
    }
  }

  std::string_view text_;
  std::size_t begin_ = 0;
  std::vector<std::size_t> open_;  // brackets
  std::optional<std::size_t> last_;
  std::string_view key_;
  Expected expected_ = Expected::value;
};

// The four hexadecimal digits behind "\u"; none: there are no four.
std::optional<unsigned> unit_at(std::string_view text, std::size_t at) {
  constexpr std::size_t digits = 4;
  if (text.substr(at, 2) != "\\u") return std::nullopt;
  const std::string_view word = text.substr(at + 2, digits);
  const bool are_digits = std::all_of(word.begin(), word.end(), [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
  });
  if (word.size() < digits || !are_digits) return std::nullopt;
  unsigned unit = 0;
  constexpr int base = 16;
  std::from_chars(word.data(), word.data() + word.size(), unit, base);
  return unit;
}

constexpr std::size_t unit_size = 6;  // "\u12ab"
bool is_first_half(unsigned unit) { return unit >= 0xd800U && unit < 0xdc00U; }
bool is_second_half(unsigned unit) { return unit >= 0xdc00U && unit < 0xe000U; }

// Of the escape "\u..." at `at`; empty: it is one. UTF-16 writes what is beyond 65,536 as a pair.
std::string unit_reason(std::string_view text, std::size_t at) {
  const std::optional<unsigned> unit = unit_at(text, at);
  if (!unit) {
    return "four hexadecimal digits belong behind \"\\u\"; a backslash in a string is written "
           "twice, \"\\\\u\"";
  }
  const std::string_view escape = text.substr(at, unit_size);
  if (is_second_half(*unit)) {
    return fmt::format("\"{}\" is the second half of a pair without the first", escape);
  }
  if (!is_first_half(*unit)) return {};
  const std::optional<unsigned> next = unit_at(text, at + unit_size);
  if (next && is_second_half(*next)) return {};
  return fmt::format(
      "\"{}\" is the first half of a pair: the second, \"\\udc00\" to \"\\udfff\", belongs behind "
      "it",
      escape);
}

// Of a string that is refused at `refused`, or for what comes later; none: it is one.
std::optional<SyntaxMistake> string_mistake(std::string_view text, std::size_t begin,
                                            std::size_t refused) {
  constexpr std::string_view escapes = "\"\\/bfnrtu";
  for (std::size_t at = begin + 1; at <= refused && text[at] != '"'; ++at) {
    if (text[at] == '\n' || text[at] == '\r') {
      return SyntaxMistake{begin, "a string without its closing quote"};
    }
    if (static_cast<unsigned char>(text[at]) < ' ') {
      return SyntaxMistake{at, "a control character in a string: write it with a backslash"};
    }
    if (text[at] != '\\') continue;
    if (text.substr(at, 2) == "\\u") {
      const std::string reason = unit_reason(text, at);
      if (!reason.empty()) return SyntaxMistake{at, reason};
      at += (is_first_half(*unit_at(text, at)) ? 2 : 1) * unit_size - 1;
      continue;
    }
    ++at;
    if (at < text.size() && escapes.find(text[at]) == std::string_view::npos) {
      return SyntaxMistake{
          at - 1, fmt::format("\"\\{0}\" is no escape: a backslash in a string is written twice, "
                              "\"\\\\{0}\"",
                              text[at])};
    }
  }
  if (refused + 1 >= skip_string(text, begin)) return std::nullopt;
  return SyntaxMistake{refused, "text that is not UTF-8"};
}

std::string word_reason(std::string_view text, std::size_t begin, bool is_key) {
  const std::string_view word = word_at(text, begin);
  if (is_key) return fmt::format("keys are in double quotes: \"{}\"", word);
  if (word == "True" || word == "False") {
    return fmt::format("\"{0}\" is Python's: write {1}", word, word == "True" ? "true" : "false");
  }
  if (word == "None") return "\"None\" is Python's: write null";
  for (const std::string_view no_number : {"nan", "inf", "infinity"}) {
    const bool is_it =
        std::equal(word.begin(), word.end(), no_number.begin(), no_number.end(),
                   [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
    if (is_it) return fmt::format("\"{}\" is no number in JSON", word);
  }
  if (std::any_of(word.begin(), word.end(), is_letter)) {
    return fmt::format("text is in double quotes: \"{}\"", word);
  }
  return fmt::format("\"{}\" is no number in JSON", word);
}

// Of a character that begins nothing in JSON.
std::optional<std::string> strange(char c) {
  if (c == '#') return "\"#\" begins no comment: comments begin with //";
  if (c == '\'') return "text is in double quotes, not in single ones";
  if (c == '=') return "\"=\" is not JSON's: a key and its value have a colon between";
  if (c == ';') return "\";\" is not JSON's: members and elements have commas between";
  return std::nullopt;
}

std::string unexpected(std::string_view text, std::size_t begin) {
  const auto byte = static_cast<unsigned char>(text[begin]);
  if (byte < ' ') return fmt::format("the byte {:#04x}, which is no text", byte);
  constexpr unsigned char ascii = 0x80;
  if (byte >= ascii) return "a character outside of a string";
  return fmt::format("\"{}\" cannot stand here", text[begin]);
}

SyntaxMistake closing_mistake(std::string_view text, std::size_t begin, const Seen& seen) {
  const char c = text[begin];
  if (seen.last() && text[*seen.last()] == ',') {
    return {*seen.last(), fmt::format("a comma before the closing \"{}\": remove it", c)};
  }
  if (seen.expected() == Expected::colon) {
    return {begin, fmt::format("the key {} has no value", seen.key())};
  }
  if (seen.last() && text[*seen.last()] == ':') {
    return {begin, fmt::format("the key {} has no value", seen.key())};
  }
  if (!seen.open()) return {begin, fmt::format("\"{}\" closes nothing", c)};
  return {begin, fmt::format("\"{}\" cannot close the \"{}\" of line {}", c, text[*seen.open()],
                             line_and_column(text, *seen.open()).line)};
}

SyntaxMistake early_end(std::string_view text, const Seen& seen) {
  if (!seen.last()) return {text.size(), "JSON ends too early: there is nothing in it"};
  if (!seen.open()) return {text.size(), "JSON ends too early"};
  return {text.size(), fmt::format("JSON ends too early: the \"{}\" of line {} is not closed",
                                   text[*seen.open()], line_and_column(text, *seen.open()).line)};
}

SyntaxMistake mistake_at(std::string_view text, std::size_t refused, const Seen& seen) {
  const std::size_t begin = seen.begin();
  const char c = text[begin];
  if (c == '"') {
    if (const auto mistake = string_mistake(text, begin, refused)) return *mistake;
  }
  if (const auto reason = strange(c)) return {begin, *reason};
  const Expected expected = seen.expected();
  if (expected == Expected::end) return {begin, "something follows the end of the document"};
  if (c == '}' || c == ']') return closing_mistake(text, begin, seen);
  if (expected == Expected::colon) {
    return {begin, fmt::format("a colon is missing after the key {}", seen.key())};
  }
  if (c == ',') return {begin, "a value is missing before this comma"};
  if (c == ':') return {begin, "a colon belongs behind a key, within {}"};
  if (expected == Expected::comma) {
    const bool begins = c == '"' || c == '{' || c == '[' || is_word(c);
    return {begin, begins ? "a comma is missing before this" : unexpected(text, begin)};
  }
  const bool is_key = expected == Expected::key;
  if (is_word(c)) return {begin, word_reason(text, begin, is_key)};
  if (is_key && (c == '{' || c == '[')) {
    return {begin, "a key in double quotes and a colon belong before this"};
  }
  return {begin, unexpected(text, begin)};
}

}  // namespace

SyntaxMistake explain_syntax(std::string_view text, std::size_t refused) {
  const Seen seen(text, refused);
  if (refused >= text.size() || seen.begin() >= text.size()) return early_end(text, seen);
  SyntaxMistake mistake = mistake_at(text, refused, seen);
  mistake.reason = "not valid JSON: " + mistake.reason;
  return mistake;
}

LineAndColumn line_and_column(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t newline = before.rfind('\n');
  return {line, newline == std::string_view::npos ? before.size() + 1 : before.size() - newline};
}

}  // namespace shardsim
