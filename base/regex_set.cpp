#include "base/regex_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>

namespace shardsim {
namespace {

constexpr char32_t ascii_end = 0x80;

bool is_between(char32_t c, char32_t first, char32_t last) { return first <= c && c <= last; }

// A character inside or outside of brackets, without a meaning of its own.
std::string escaped(char32_t c) {
  if (is_between(c, '0', '9') || is_between(c, 'A', 'Z') || is_between(c, 'a', 'z') || c == '_') {
    return std::string(1, static_cast<char>(c));
  }
  if (is_between(c, 0x21, 0x7e)) return fmt::format("\\{}", static_cast<char>(c));
  return fmt::format("\\x{{{:x}}}", static_cast<unsigned>(c));
}

std::string range(char32_t first, char32_t last) {
  return first == last ? escaped(first) : escaped(first) + "-" + escaped(last);
}

// Code points for which Python's str.isspace is true, and all others: category Zs, or bidirectional
// class WS, B or S (https://docs.python.org/3/library/stdtypes.html#str.isspace), as CPython 3.11
// answers for every code point of Unicode 14. Then the same for re.ASCII.
constexpr const char* spaces =
    R"(\t-\r\x1c-\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr const char* no_spaces =
    R"(\x00-\x08\x0e-\x1b\x21-\x84\x86-\x9f\xa1-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr const char* ascii_spaces = R"(\t-\r\x20)";
constexpr const char* no_ascii_spaces = R"(\x00-\x08\x0e-\x1f\x21-\x{10ffff})";
// Letters and numbers. The ranges of ASCII stand first because PCRE2 is fast with them.
constexpr const char* words = R"(0-9A-Z_a-z\p{L}\p{N})";
// All other categories; of the connecting punctuation all but "_": category Pc of
// https://www.unicode.org/Public/14.0.0/ucd/extracted/DerivedGeneralCategory.txt.
constexpr const char* no_words =
    R"(\p{M}\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}\p{S}\p{Z}\p{C})"
    R"(\x{203f}\x{2040}\x{2054}\x{fe33}\x{fe34}\x{fe4d}-\x{fe4f}\x{ff3f})";
constexpr const char* ascii_words = "0-9A-Z_a-z";
constexpr const char* no_ascii_words = R"(\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x{10ffff})";
constexpr const char* ascii_digits = "0-9";
constexpr const char* no_ascii_digits = R"(\x00-\x2f\x3a-\x{10ffff})";

const char* category_items(char32_t name, bool ascii) {
  switch (name) {
    case 'd':
      return ascii ? ascii_digits : R"(0-9\p{Nd})";
    case 'D':
      return ascii ? no_ascii_digits : R"(\P{Nd})";
    case 's':
      return ascii ? ascii_spaces : spaces;
    case 'S':
      return ascii ? no_ascii_spaces : no_spaces;
    case 'w':
      return ascii ? ascii_words : words;
    default:
      assert(name == 'W');
      return ascii ? no_ascii_words : no_words;
  }
}

// PCRE2 folds as Python does but for these, each of which Python takes for one letter.
constexpr std::array<std::u32string_view, 4> folded_by_python_only{
    U"Ii\u0130\u0131", U"\u0390\u1fd3", U"\u03b0\u1fe3", U"\ufb05\ufb06"};

}  // namespace

std::string utf8(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  const auto tail = [&](int shift) { return byte(0x80 | ((c >> shift) & 0x3f)); };
  if (c < ascii_end) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {byte(0xe0 | (c >> 12)), tail(6), tail(0)};
  return {byte(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

std::string literal_atom(char32_t c, const RegexFlags& flags) {
  if (!flags.ignore_case) return escaped(c);
  RegexSet set(flags);
  set.add(c, c);
  return set.atom(/*negated=*/false);
}

std::string category_atom(char32_t name, const RegexFlags& flags) {
  return fmt::format("[{}]", category_items(name, flags.ascii));
}

void RegexSet::add(char32_t first, char32_t last) {
  items_ += range(first, last);
  if (flags_.ignore_case) add_other_case(first, last);
}

void RegexSet::add_other_case(char32_t first, char32_t last) {
  if (!flags_.ascii) {
    caseless_ = true;
    for (const std::u32string_view letter : folded_by_python_only) {
      if (std::none_of(letter.begin(), letter.end(),
                       [&](char32_t c) { return is_between(c, first, last); })) {
        continue;
      }
      for (const char32_t c : letter) items_ += escaped(c);
    }
    return;
  }
  const auto add_shifted = [&](char32_t from, char32_t to, int shift) {
    const char32_t low = std::max(first, from);
    const char32_t high = std::min(last, to);
    const auto shifted = [&](char32_t c) {
      return static_cast<char32_t>(static_cast<int>(c) + shift);
    };
    if (low <= high) items_ += range(shifted(low), shifted(high));
  };
  add_shifted('A', 'Z', 'a' - 'A');
  add_shifted('a', 'z', 'A' - 'a');
}

void RegexSet::add_category(char32_t name) { items_ += category_items(name, flags_.ascii); }

std::string RegexSet::atom(bool negated) const {
  const std::string set = fmt::format("[{}{}]", negated ? "^" : "", items_);
  return caseless_ ? fmt::format("(?i:{})", set) : set;
}

}  // namespace shardsim
