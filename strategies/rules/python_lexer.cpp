#include "strategies/rules/python_lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/regex_set.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

using TokenKind = PythonToken::Kind;
using ValueKind = PythonValue::Kind;

constexpr std::array<std::string_view, 35> keywords{
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
// The longer first, where one begins another.
constexpr std::array<std::string_view, 37> symbols{
    "...", "**", "//", "<<", ">>", "==", "!=", "<=", ">=", "->", ":=", "+", "-",
    "*",   "/",  "%",  "@",  "&",  "|",  "^",  "~",  "<",  ">",  "(",  ")", "[",
    "]",   "{",  "}",  ",",  ":",  ".",  "=",  ";",  "!",  "$",  "?"};

bool is_digit(char c) { return '0' <= c && c <= '9'; }
bool is_name_start(char c) { return c == '_' || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }
char lower(char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The digit's value; 99 for none.
int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  const char low = lower(c);
  return 'a' <= low && low <= 'f' ? low - 'a' + 10 : 99;
}

class Lexer {
 public:
  Lexer(std::string_view text, const Place& place) : text_(text), place_(place) {}

  std::vector<PythonToken> run() {
    if (text_.find('\0') != std::string_view::npos) {
      throw RuleError("SyntaxError", place_, "a null character in the expression");
    }
    skip_empty_lines();
    if (has_indent_) throw RuleError("IndentationError", place_, "the expression is indented");
    while (skip_space(), next_ < text_.size()) tokens_.push_back(token());
    if (!open_.empty()) fail(fmt::format("\"{}\" is never closed", open_.back()));
    tokens_.push_back({TokenKind::end, "the end", {}, text_.size()});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw_syntax_error(place_, message, next_, text_);
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return next_ + ahead < text_.size() ? text_[next_ + ahead] : '\0';
  }

  void skip_comment() {
    if (peek() == '#') next_ = std::min(text_.find_first_of("\r\n", next_), text_.size());
  }

  // Lines of spaces and comments; stops at the first character of any other.
  void skip_empty_lines() {
    while (next_ < text_.size()) {
      const std::size_t start = next_;
      while (peek() == ' ' || peek() == '\t' || peek() == '\f') ++next_;
      has_indent_ = next_ > start && text_[next_ - 1] != '\f';
      skip_comment();
      if (peek() != '\n' && peek() != '\r') return;
      ++next_;
      has_indent_ = false;
    }
  }

  void skip_space() {
    while (next_ < text_.size()) {
      if (peek() == ' ' || peek() == '\t' || peek() == '\f') {
        ++next_;
      } else if (peek() == '#') {
        skip_comment();
      } else if (peek() == '\\' && (peek(1) == '\n' || peek(1) == '\r')) {
        next_ += peek(1) == '\r' && peek(2) == '\n' ? 3 : 2;
        if (next_ == text_.size()) fail("unexpected end after a backslash");
      } else if (peek() == '\n' || peek() == '\r') {
        if (!open_.empty()) {
          ++next_;
          continue;
        }
        skip_empty_lines();
        if (next_ < text_.size() || has_indent_) fail("a second line");
      } else {
        return;
      }
    }
  }

  PythonToken token() {
    const std::size_t start = next_;
    if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) return number();
    if (peek() == '"' || peek() == '\'') return string("");
    if (is_name_start(peek())) {
      std::size_t end = next_;
      while (end < text_.size() && is_name_part(text_[end])) ++end;
      const std::string word(text_.substr(next_, end - next_));
      next_ = end;
      if ((peek() == '"' || peek() == '\'') && is_prefix(word)) return string(word);
      const bool is_keyword = std::find(keywords.begin(), keywords.end(), word) != keywords.end();
      return {is_keyword ? TokenKind::keyword : TokenKind::name, word, {}, start};
    }
    for (const std::string_view symbol : symbols) {
      if (!text_.substr(next_).starts_with(symbol)) continue;
      track_brackets(symbol);
      next_ += symbol.size();
      return {TokenKind::symbol, std::string(symbol), {}, start};
    }
    fail("a character that Python does not know");
  }

  void track_brackets(std::string_view symbol) {
    constexpr std::size_t deepest = 199;  // Python's
    const std::size_t opening = std::string_view("([{").find(symbol.front());
    const std::size_t closing = std::string_view(")]}").find(symbol.front());
    if (opening != std::string_view::npos) {
      if (open_.size() == deepest) fail("too many nested brackets");
      open_ += symbol;
    } else if (closing != std::string_view::npos) {
      if (open_.empty() || open_.back() != "([{"[closing]) {
        fail(fmt::format("\"{}\" closes nothing", symbol));
      }
      open_.pop_back();
    }
  }

  // -- numbers ------------------------------------------------------------------------------------

  // Digits with single underscores between them; empty when there is none.
  std::string digits(int base) {
    std::string result;
    while (digit_value(peek()) < base || (peek() == '_' && !result.empty())) {
      if (peek() == '_' && digit_value(peek(1)) >= base) fail("a number ends in \"_\"");
      if (peek() != '_') result += peek();
      ++next_;
    }
    return result;
  }

  // Too large is infinite, too small is 0.
  static double real(const std::string& text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, value).ec != std::errc::result_out_of_range) return value;
    const std::size_t exponent = text.find('e');
    const bool is_tiny = exponent != std::string::npos && text[exponent + 1] == '-';
    return is_tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }

  static PythonValue integer(const std::string& digits, int base) {
    PythonValue value{ValueKind::integer};
    const char* const end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, value.integer, base).ec == std::errc()) return value;
    value.kind = ValueKind::real;
    value.integer = 0;
    if (base == 10) {
      value.real = real(digits);
    } else {
      for (const char c : digits) value.real = value.real * base + digit_value(c);
    }
    return value;
  }

  PythonToken number() {
    const std::size_t start = next_;
    const int base = peek() != '0' ? 10 : base_of(lower(peek(1)));
    PythonValue value;
    if (base != 10) {
      next_ += 2;
      if (peek() == '_') ++next_;
      const std::string all = digits(base);
      if (all.empty()) fail("a number without digits");
      value = integer(all, base);
    } else {
      value = decimal();
    }
    if (base == 10 && lower(peek()) == 'j') {
      ++next_;
      value = {ValueKind::other};
      value.text = text_.substr(start, next_ - start);
    }
    check_end_of_number();
    return {TokenKind::literal, std::string(text_.substr(start, next_ - start)), value, start};
  }

  static int base_of(char letter) {
    return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  }

  PythonValue decimal() {
    std::string all = digits(10);
    const std::string whole = all;
    bool is_real = false;
    if (peek() == '.') {
      is_real = true;
      ++next_;
      all += "." + (is_digit(peek()) ? digits(10) : "");
    }
    const bool is_signed = peek(1) == '+' || peek(1) == '-';
    if (lower(peek()) == 'e' && is_digit(peek(is_signed ? 2 : 1))) {
      is_real = true;
      all += 'e';
      if (is_signed) all += peek(1);
      next_ += is_signed ? 2 : 1;
      all += digits(10);
    }
    if (is_real) {
      PythonValue value{ValueKind::real};
      value.real = real(all);
      return value;
    }
    const bool has_zero = whole.size() > 1 && whole.front() == '0';
    if (has_zero && lower(peek()) != 'j' && whole.find_first_not_of('0') != std::string::npos) {
      fail("an integer starts with 0");
    }
    return integer(whole, 10);
  }

  // Only the words that may follow without a space: "1if x else 2".
  void check_end_of_number() {
    if (!is_name_part(peek())) return;
    for (const std::string_view word : {"and", "else", "for", "if", "in", "is", "not", "or"}) {
      if (text_.substr(next_).starts_with(word)) return;
    }
    fail("a number runs into a name");
  }

  // -- strings ------------------------------------------------------------------------------------

  static bool is_prefix(const std::string& word) {
    std::string low = word;
    std::transform(low.begin(), low.end(), low.begin(), lower);
    constexpr std::array<std::string_view, 8> prefixes{"r", "u", "b", "f", "br", "rb", "fr", "rf"};
    return std::find(prefixes.begin(), prefixes.end(), low) != prefixes.end();
  }

  PythonToken string(const std::string& prefix) {
    const std::size_t start = next_ - prefix.size();
    const auto has = [&](char c) {
      return prefix.find(c) != std::string::npos ||
             prefix.find(static_cast<char>(c - 'a' + 'A')) != std::string::npos;
    };
    const bool is_triple = peek(1) == peek() && peek(2) == peek();
    const std::string quote(is_triple ? 3 : 1, peek());
    next_ += quote.size();
    PythonValue value{has('b') ? ValueKind::bytes : ValueKind::string};
    while (!text_.substr(next_).starts_with(quote)) {
      if (next_ >= text_.size() || (!is_triple && (peek() == '\n' || peek() == '\r'))) {
        fail("a string is never closed");
      }
      if (peek() == '\\' && !has('f')) {
        escape(value, has('r'));
      } else if (peek() == '\\') {
        next_ += 2;
      } else {
        if (has('b') && (peek() & 0x80) != 0) fail("bytes hold ASCII only");
        value.text += peek();
        ++next_;
      }
    }
    next_ += quote.size();
    const std::string text(text_.substr(start, next_ - start));
    return {has('f') ? TokenKind::formatted : TokenKind::literal, text, value, start};
  }

  void escape(PythonValue& value, bool is_raw) {
    const char letter = peek(1);
    if (is_raw) {
      value.text += {'\\', letter};
      next_ += 2;
      return;
    }
    next_ += 2;
    constexpr std::string_view letters = "\\'\"abfnrtv";
    constexpr std::string_view characters = "\\'\"\a\b\f\n\r\t\v";
    const std::size_t known = letters.find(letter);
    if (known != std::string_view::npos) {
      value.text += characters[known];
    } else if (letter == '\n' || letter == '\r') {
      if (letter == '\r' && peek() == '\n') ++next_;
    } else if (letter == 'x') {
      append(value, coded(16, 2, 2));
    } else if (digit_value(letter) < 8) {
      --next_;
      append(value, coded(8, 1, 3));
    } else if (value.kind == ValueKind::string && (letter == 'u' || letter == 'U')) {
      const std::size_t count = letter == 'u' ? 4 : 8;
      append(value, coded(16, count, count));
    } else if (value.kind == ValueKind::string && letter == 'N') {
      fail("\\N{...} is not supported");
    } else {
      value.text += {'\\', letter};
    }
  }

  char32_t coded(int base, std::size_t least, std::size_t most) {
    char32_t code = 0;
    std::size_t count = 0;
    for (; count < most && digit_value(peek()) < base; ++count, ++next_) {
      code = code * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(peek()));
    }
    if (count < least) fail("an escape is cut short");
    if (code > 0x10ffff || (0xd800 <= code && code <= 0xdfff)) fail("an escape is no character");
    return code;
  }

  static void append(PythonValue& value, char32_t code) {
    if (value.kind == ValueKind::bytes) {
      value.text += static_cast<char>(code & 0xff);
    } else {
      value.text += utf8(code);
    }
  }

  std::string_view text_;
  const Place& place_;
  std::size_t next_ = 0;
  bool has_indent_ = false;
  std::string open_;  // brackets
  std::vector<PythonToken> tokens_;
};

}  // namespace

void throw_syntax_error(const Place& place, const std::string& message, std::size_t position,
                        std::string_view text) {
  constexpr std::size_t most = 120;  // characters
  std::string shown(text);
  if (text.size() > most) {
    const std::size_t begin = position > most / 2 ? position - most / 2 : 0;
    shown = fmt::format("{}{}{}", begin > 0 ? "..." : "", text.substr(begin, most),
                        begin + most < text.size() ? "..." : "");
  }
  throw RuleError("SyntaxError", place,
                  fmt::format("{} at position {} of `{}`", message, position, shown));
}

std::vector<PythonToken> read_python_tokens(std::string_view text, const Place& place) {
  return Lexer(text, place).run();
}

}  // namespace shardsim
