#include "base/regex_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/regex_syntax.hpp"

namespace shardsim {
namespace {

constexpr char32_t last_character = 0x10ffff;
constexpr const char* exclusive_flags = "the flags a and u exclude each other";

bool is_surrogate(char32_t c) { return 0xd800 <= c && c <= 0xdfff; }

bool is_ascii_letter(char32_t c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); }

std::optional<char32_t> digit_of(char32_t c, int base) {
  char32_t value = last_character;
  if ('0' <= c && c <= '9') value = c - '0';
  if ('a' <= c && c <= 'f') value = c - 'a' + 10;
  if ('A' <= c && c <= 'F') value = c - 'A' + 10;
  return value < static_cast<char32_t>(base) ? std::optional(value) : std::nullopt;
}

// Bytes of the character that starts with `lead`; 0 for none.
std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

std::vector<char32_t> decode(std::string_view text) {
  std::vector<char32_t> characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t length = sequence_length(lead);
    char32_t c = length == 1 ? lead : lead & (0x7fU >> length);
    bool valid = length > 0 && length <= text.size();
    for (std::size_t i = 1; valid && i < length; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      valid = (byte & 0xc0U) == 0x80U;
      c = (c << 6) | (byte & 0x3fU);
    }
    if (!valid) throw RegexSyntaxError("not valid UTF-8", characters.size());
    characters.push_back(c);
    text.remove_prefix(length);
  }
  return characters;
}

}  // namespace

bool RegexToken::is_any_of(std::u32string_view characters) const {
  return !escaped && characters.find(c) != std::u32string_view::npos;
}

bool RegexToken::is_category() const {
  return escaped && (c == 'd' || c == 'D' || c == 's' || c == 'S' || c == 'w' || c == 'W');
}

RegexReader::RegexReader(std::string_view expression) : text_(decode(expression)) {}

void RegexReader::fail(const std::string& message) const { throw RegexSyntaxError(message, next_); }

std::optional<RegexToken> RegexReader::peek() const {
  if (next_ >= text_.size()) return std::nullopt;
  if (text_[next_] != '\\') return RegexToken{text_[next_]};
  if (next_ + 1 == text_.size()) fail("a backslash at the end");
  return RegexToken{text_[next_ + 1], true};
}

void RegexReader::take() { next_ += text_[next_] == '\\' ? 2 : 1; }

RegexToken RegexReader::take_or_fail() {
  const auto token = peek();
  if (!token) fail("unexpected end");
  take();
  return *token;
}

bool RegexReader::accept(char32_t c) {
  const auto token = peek();
  if (!token || *token != c) return false;
  take();
  return true;
}

std::string RegexReader::until(char32_t end) {
  std::string result;
  while (!accept(end)) {
    if (!peek()) fail(fmt::format("missing {}", utf8(end)));
    const std::size_t from = next_;
    take();
    for (std::size_t i = from; i < next_; ++i) result += utf8(text_[i]);
  }
  if (result.empty()) fail("missing group name");
  return result;
}

void RegexReader::skip_comment() {
  while (!accept(')')) {
    if (!peek()) fail("missing closing parenthesis of a comment");
    take();
  }
}

// Up to `count` digits that follow `value`; too few are an error.
char32_t RegexReader::digits(int base, int count, int least, char32_t value) {
  int found = 0;
  for (; found < count && next_ < text_.size(); ++found, ++next_) {
    const auto digit = digit_of(text_[next_], base);
    if (!digit) break;
    value = value * static_cast<char32_t>(base) + *digit;
  }
  if (found < least) fail("incomplete escape");
  return value;
}

char32_t RegexReader::escaped_character(char32_t letter) {
  constexpr std::u32string_view letters = U"abfnrtv";
  constexpr std::u32string_view characters = U"\a\b\f\n\r\t\v";
  const std::size_t known = letters.find(letter);
  if (known != std::u32string_view::npos) return characters[known];
  char32_t value = letter;
  if (letter == 'x') {
    value = digits(16, 2, 2, 0);
  } else if (letter == 'u') {
    value = digits(16, 4, 4, 0);
  } else if (letter == 'U') {
    value = digits(16, 8, 8, 0);
  } else if (const auto first = digit_of(letter, 8)) {
    value = digits(8, 2, 0, *first);
    if (value > 0xff) fail("an octal escape above \\377");
  } else if (letter == 'N') {
    fail("\\N{...} is not supported");
  } else if (is_ascii_letter(letter) || digit_of(letter, 10)) {
    fail(fmt::format("bad escape \\{}", utf8(letter)));
  }
  if (value > last_character) fail("an escape above \\U0010ffff");
  if (is_surrogate(value)) fail("a surrogate is no character");
  return value;
}

RegexReader::OctalOrGroup RegexReader::octal_or_group(char32_t digit) {
  const auto digit_ahead = [&](std::size_t offset, int base) {
    return next_ + offset < text_.size() ? digit_of(text_[next_ + offset], base) : std::nullopt;
  };
  char32_t value = digit - '0';
  const auto second = digit_ahead(0, 10);
  if (!second) return {value, false};
  if (digit_of(digit, 8) && digit_ahead(0, 8) && digit_ahead(1, 8)) {
    return {escaped_character(digit), true};
  }
  ++next_;
  return {value * 10 + *second, false};
}

RegexToken RegexReader::take_in_set(std::size_t start) {
  auto token = peek();
  if (!token) throw RegexSyntaxError("missing closing bracket", start);
  take();
  if (token->escaped && !token->is_category()) token->value = escaped_character(token->c);
  return *token;
}

std::string RegexReader::set(const RegexFlags& flags) {
  const std::size_t start = next_ - 1;
  const bool negated = accept('^');
  RegexSet set(flags);
  while (true) {
    const RegexToken first = take_in_set(start);
    if (first == ']' && !set.empty()) break;
    const bool has_dash = accept('-');
    const RegexToken last = has_dash ? take_in_set(start) : first;
    const bool is_range = has_dash && last != ']';
    if (is_range && (first.is_category() || last.is_category())) {
      fail("a range cannot end in a class such as \\d");
    }
    const char32_t low = first.value.value_or(first.c);
    const char32_t high = is_range ? last.value.value_or(last.c) : low;
    if (high < low) fail("the ends of a range are out of order");
    if (first.is_category()) {
      set.add_category(first.c);
    } else {
      set.add(low, high);
    }
    if (!has_dash || is_range) continue;
    set.add('-', '-');
    break;
  }
  return set.atom(negated);
}

bool RegexReader::bounds(std::int64_t& min, std::int64_t& max) {
  constexpr std::int64_t enough = 1'000'000'000;  // more is refused by the caller
  const std::size_t start = next_;
  const auto number = [&]() -> std::optional<std::int64_t> {
    std::optional<std::int64_t> value;
    while (next_ < text_.size()) {
      const auto digit = digit_of(text_[next_], 10);
      if (!digit) break;
      value = std::min(value.value_or(0) * 10 + static_cast<std::int64_t>(*digit), enough);
      ++next_;
    }
    return value;
  };
  if (accept('}')) {
    next_ = start;
    return false;
  }
  const auto low = number();
  const auto high = accept(',') ? number() : low;
  if (!accept('}')) {
    next_ = start;
    return false;
  }
  min = low.value_or(min);
  max = high.value_or(max);
  return true;
}

void RegexReader::add_flag(RegexToken letter, bool on, RegexFlags& flags) const {
  if (letter == 'i') {
    flags.ignore_case = on;
  } else if (letter == 'm') {
    flags.multiline = on;
  } else if (letter == 's') {
    flags.dot_all = on;
  } else if (letter == 'x') {
    flags.verbose = on;
  } else if (!on || (letter != 'a' && letter != 'u')) {
    fail(fmt::format("unknown flag or extension \"{}\"", utf8(letter.c)));
  }
}

bool RegexReader::flags(RegexToken letter, RegexFlags& flags) {
  std::u32string on;
  if (letter == ')') fail("unknown extension (?)");
  for (; !letter.is_any_of(U"-:)"); letter = take_or_fail()) {
    add_flag(letter, /*on=*/true, flags);
    on += letter.c;
  }
  const auto has = [&](char32_t c) { return on.find(c) != std::u32string::npos; };
  if (has('a') && has('u')) fail(exclusive_flags);
  if (letter == ')') {
    flags.ascii = flags.ascii || has('a');
    flags.unicode = flags.unicode || has('u');
    if (flags.ascii && flags.unicode) fail(exclusive_flags);
    return false;
  }
  flags.ascii = has('a') || (flags.ascii && !has('u'));
  if (letter == ':') return true;
  letter = take_or_fail();
  if (letter == ':') fail("missing flag");
  for (; letter != ':'; letter = take_or_fail()) {
    if (has(letter.c)) fail("a flag is turned on and off");
    add_flag(letter, /*on=*/false, flags);
  }
  return true;
}

}  // namespace shardsim
