#include "hlo/cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/error.hpp"

namespace shardsim {
namespace {

enum class Role : std::uint8_t { plain, open, close, string, comma, blank, line_end, slash };

constexpr std::array<Role, 256> roles = [] {
  std::array<Role, 256> table{};
  for (const char c : {'(', '[', '{'}) table[static_cast<unsigned char>(c)] = Role::open;
  for (const char c : {')', ']', '}'}) table[static_cast<unsigned char>(c)] = Role::close;
  table['"'] = Role::string;
  table[','] = Role::comma;
  table[' '] = table['\t'] = table['\r'] = Role::blank;
  table['\n'] = Role::line_end;
  table['/'] = Role::slash;
  return table;
}();

Role role_of(char c) { return roles[static_cast<unsigned char>(c)]; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

}  // namespace

void HloSource::fail(std::string_view where, std::string_view message) const {
  const auto offset = std::clamp<std::ptrdiff_t>(where.data() - text.data(), 0,
                                                 static_cast<std::ptrdiff_t>(text.size()));
  const auto line = std::count(text.begin(), text.begin() + offset, '\n') + 1;
  throw InputError({file, fmt::format("line {}", line)}, message);
}

void HloCursor::skip_blanks() {
  while (!at_end()) {
    if (role_of(text_[position_]) == Role::blank) {
      ++position_;
    } else if (rest().substr(0, 2) == "/*") {
      const std::size_t end = text_.find("*/", position_ + 2);
      position_ = end == std::string_view::npos ? text_.size() : end + 2;
    } else {
      return;
    }
  }
}

void HloCursor::skip_space() {
  for (;;) {
    skip_blanks();
    if (peek() == '\n') {
      ++position_;
    } else if (rest().substr(0, 2) == "//") {
      skip_line();
    } else {
      return;
    }
  }
}

void HloCursor::skip_line() {
  const std::size_t end = text_.find('\n', position_);
  position_ = end == std::string_view::npos ? text_.size() : end + 1;
}

bool HloCursor::accept(char c) {
  if (peek() != c || at_end()) return false;
  ++position_;
  return true;
}

bool HloCursor::accept(std::string_view word) {
  if (rest().substr(0, word.size()) != word) return false;
  position_ += word.size();
  return true;
}

std::string_view HloCursor::name() {
  if (peek() == '%') ++position_;
  const std::size_t begin = position_;
  while (!at_end() && is_name_character(text_[position_])) ++position_;
  return text_.substr(begin, position_ - begin);
}

void HloCursor::skip_string() {
  ++position_;
  while (!at_end() && text_[position_] != '"') position_ += text_[position_] == '\\' ? 2 : 1;
  position_ = std::min(position_ + 1, text_.size());
}

std::string_view HloCursor::value(bool to_blank) {
  const std::size_t begin = position_;
  std::int64_t depth = 0;
  while (!at_end()) {
    const Role role = role_of(text_[position_]);
    if (role == Role::string) {
      skip_string();
      continue;
    }
    if (role == Role::slash) {
      const std::size_t before = position_;
      skip_blanks();
      if (position_ != before) continue;
    }
    if (depth == 0 && (role == Role::comma || role == Role::line_end || role == Role::close ||
                       (to_blank && role == Role::blank))) {
      break;
    }
    if (role == Role::open) ++depth;
    if (role == Role::close) --depth;
    ++position_;
  }
  return text_.substr(begin, position_ - begin);
}

std::string_view HloCursor::bracketed() {
  const std::size_t begin = position_;
  std::int64_t depth = 0;
  while (!at_end()) {
    const Role role = role_of(text_[position_]);
    if (role == Role::string) {
      skip_string();
      continue;
    }
    ++position_;
    if (role == Role::open) ++depth;
    if (role == Role::close && --depth == 0) break;
  }
  return text_.substr(begin, position_ - begin);
}

std::string_view trim_blanks(std::string_view text) {
  HloCursor cursor(text);
  cursor.skip_space();
  text = cursor.rest();
  while (!text.empty() && (role_of(text.back()) == Role::blank || text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

std::string_view without_brackets(std::string_view text) {
  text = trim_blanks(text);
  if (text.size() >= 2 && role_of(text.front()) == Role::open &&
      HloCursor(text).bracketed().size() == text.size()) {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  HloCursor cursor(without_brackets(text));
  cursor.skip_space();
  while (!cursor.at_end()) {
    std::string_view part = cursor.value();
    // A list may run over lines; an unmatched bracket ends it.
    while (cursor.peek() == '\n') {
      const std::size_t length = part.size();
      cursor.advance();
      const std::string_view more = cursor.value();
      part = {part.data(), length + 1 + more.size()};
    }
    parts.push_back(trim_blanks(part));
    if (!cursor.accept(',')) break;
    cursor.skip_space();
  }
  return parts;
}

std::string_view find_attribute(std::string_view attributes, std::string_view key) {
  HloCursor cursor(attributes);
  for (;;) {
    cursor.skip_space();
    if (cursor.accept(',')) continue;
    if (cursor.at_end()) return {};
    const std::string_view item = cursor.value();
    if (item.size() > key.size() && item[key.size()] == '=' && item.substr(0, key.size()) == key) {
      return trim_blanks(item.substr(key.size() + 1));
    }
    if (!cursor.at_end() && cursor.peek() != ',' && cursor.peek() != '\n') return {};
  }
}

}  // namespace shardsim
