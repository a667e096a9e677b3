#include "stablehlo/scanner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shardsim::stablehlo {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool begins_word(char c) { return is_letter(c) || c == '_'; }
bool in_word(char c) { return begins_word(c) || is_digit(c) || c == '$' || c == '.'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return (c | 0x20) - 'a' + 10;
}

}  // namespace

void Scanner::skip_blanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++position_;
    } else if (c == '/' && text_.substr(position_, 2) == "//") {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else {
      return;
    }
  }
}

char Scanner::peek() {
  skip_blanks();
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool Scanner::next_is(std::string_view punctuation) {
  skip_blanks();
  return text_.substr(position_, punctuation.size()) == punctuation;
}

bool Scanner::accept(std::string_view punctuation) {
  if (!next_is(punctuation)) return false;
  position_ += punctuation.size();
  return true;
}

void Scanner::expect(std::string_view punctuation) {
  if (!accept(punctuation)) fail_expected(fmt::format("\"{}\"", punctuation));
}

bool Scanner::next_is_word(std::string_view word) {
  if (!next_is(word)) return false;
  const std::size_t end = position_ + word.size();
  return end >= text_.size() || !in_word(text_[end]);
}

bool Scanner::accept_word(std::string_view word) {
  if (!next_is_word(word)) return false;
  position_ += word.size();
  return true;
}

std::string_view Scanner::try_word() {
  if (!begins_word(peek())) return {};
  const std::size_t begin = position_;
  while (position_ < text_.size() && in_word(text_[position_])) ++position_;
  return text_.substr(begin, position_ - begin);
}

std::string_view Scanner::word(std::string_view what) {
  const std::string_view found = try_word();
  if (found.empty()) fail_expected(what);
  return found;
}

std::string_view Scanner::suffix_id(std::string_view what) {
  const std::size_t begin = position_;
  while (position_ < text_.size() && (in_word(text_[position_]) || text_[position_] == '-')) {
    ++position_;
  }
  if (position_ == begin) fail_expected(what);
  return text_.substr(begin, position_ - begin);
}

std::string Scanner::symbol() {
  expect("@");
  if (position_ < text_.size() && text_[position_] == '"') return string_literal();
  return std::string(suffix_id("a name after \"@\""));
}

bool Scanner::next_is_digit() { return is_digit(peek()); }

std::int64_t Scanner::integer(std::string_view what) {
  const char first = peek();
  if (!is_digit(first) && first != '-') fail_expected(what);
  std::int64_t value = 0;
  const char* begin = text_.data() + position_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) fail("number too large");
  if (error != std::errc()) fail_expected(what);
  position_ += static_cast<std::size_t>(end - begin);
  return value;
}

std::string_view Scanner::number() {
  const char first = peek();
  const std::size_t begin = position_;
  if (first == '-' || first == '+') ++position_;
  if (position_ >= text_.size() || !is_digit(text_[position_])) {
    position_ = begin;
    fail_expected("a number");
  }
  const bool hexadecimal = text_.substr(position_, 2) == "0x";
  if (hexadecimal) position_ += 2;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    const bool exponent_sign =
        !hexadecimal && (c == '-' || c == '+') && (text_[position_ - 1] | 0x20) == 'e';
    const bool part = hexadecimal ? is_hex(c) : is_digit(c) || c == '.' || (c | 0x20) == 'e';
    if (!part && !exponent_sign) break;
    ++position_;
  }
  return text_.substr(begin, position_ - begin);
}

std::string Scanner::string_literal() {
  if (peek() != '"') fail_expected("a string");
  std::string value;
  ++position_;
  while (position_ < text_.size() && text_[position_] != '"') {
    char c = text_[position_++];
    if (c == '\\' && position_ < text_.size()) {
      c = text_[position_++];
      const bool is_code = is_hex(c) && position_ < text_.size() && is_hex(text_[position_]);
      if (is_code) {
        c = static_cast<char>(hex_value(c) * 16 + hex_value(text_[position_++]));
      } else if (c == 'n') {
        c = '\n';
      } else if (c == 't') {
        c = '\t';
      }
    }
    value += c;
  }
  if (position_ >= text_.size()) fail("string without end");
  ++position_;
  return value;
}

void Scanner::skip_string() {
  ++position_;
  while (position_ < text_.size() && text_[position_] != '"') {
    position_ += text_[position_] == '\\' ? 2 : 1;
  }
  if (position_ >= text_.size()) {
    position_ = text_.size();
    fail("string without end");
  }
  ++position_;
}

std::string_view Scanner::balanced(char open) {
  constexpr std::string_view opening = "<([{";
  constexpr std::string_view closing = ">)]}";
  const std::size_t begin = position_ + 1;
  std::string expected;  // closing brackets still to come, innermost last
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '"') {
      skip_string();
      continue;
    }
    if (c == '-' && text_.substr(position_, 2) == "->") {
      position_ += 2;
      continue;
    }
    if (const std::size_t kind = opening.find(c); kind != std::string_view::npos) {
      if (expected.size() >= deepest_nesting) fail("brackets nested too deeply");
      expected += closing[kind];
    } else if (closing.find(c) != std::string_view::npos) {
      if (c != expected.back())
        fail(fmt::format("expected \"{}\", found \"{}\"", expected.back(), c));
      expected.pop_back();
    }
    ++position_;
    if (expected.empty()) return text_.substr(begin, position_ - 1 - begin);
  }
  fail(fmt::format("\"{}\" without end", open));
}

std::string_view Scanner::angle_body() {
  if (peek() != '<') fail_expected("\"<\"");
  return balanced('<');
}

void Scanner::skip_parentheses() {
  if (peek() != '(') fail_expected("\"(\"");
  static_cast<void>(balanced('('));
}

int Scanner::line() {
  const std::size_t end = std::min(position_, text_.size());
  if (end > counted_to_) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_to_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    counted_to_ = end;
  }
  return line_;
}

Place Scanner::place() { return {file_, fmt::format("line {}", line())}; }

void Scanner::fail(std::string_view message, std::string_view suggestion) {
  throw InputError(place(), message, suggestion);
}

void Scanner::fail_expected(std::string_view what) {
  if (at_end()) fail(fmt::format("expected {}, found the end of the text", what));
  constexpr std::size_t longest = 20;
  const std::string_view rest = text_.substr(position_, longest);
  fail(fmt::format("expected {}, found \"{}\"", what, rest.substr(0, rest.find_first_of("\r\n"))));
}

}  // namespace shardsim::stablehlo
