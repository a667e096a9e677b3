// Text that fits a width: words into lines, cells into columns.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/text.hpp"

namespace shardsim {
namespace {

constexpr std::string_view punctuation = "/._,:;=|";
constexpr std::size_t between_columns = 2;
// Text columns up to this width are not wrapped; wider ones into about `most_lines` at most, and
// beneath their row where that does not do.
constexpr std::size_t narrow = 24;
constexpr std::size_t most_lines = 4;
constexpr std::size_t beneath_row = 4;  // further in

// Characters, of which UTF-8 needs several bytes for some.
std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    constexpr unsigned continues = 0x80;
    constexpr unsigned first_bits = 0xC0;
    return (static_cast<unsigned char>(c) & first_bits) != continues;
  }));
}

// Bytes of the first `count` characters.
std::size_t bytes_of(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  while (end < text.size() && length(text.substr(0, end + 1)) <= count) ++end;
  return end;
}

// Bytes of a word that go onto a line of `width` characters: up to the last punctuation, or all
// that fit.
std::size_t first_part(std::string_view word, std::size_t width) {
  const std::size_t fitting = std::max<std::size_t>(1, bytes_of(word, width));
  const std::size_t mark = word.substr(0, fitting).find_last_of(punctuation);
  return mark == std::string_view::npos ? fitting : mark + 1;
}

void add_line(std::string_view text, std::size_t width, std::vector<std::string>& lines) {
  std::string line;
  const auto end_line = [&] {
    lines.push_back(std::move(line));
    line.clear();
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && length(line) + 1 + length(word) > width) end_line();
    while (length(word) > width) {
      const std::size_t part = first_part(word, width);
      lines.emplace_back(word.substr(0, part));
      word.remove_prefix(part);
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) end_line();
}

// At least one line, of at most `width` characters each.
std::vector<std::string> lines_of(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (length(line) <= width) {
      lines.emplace_back(line);
    } else {
      add_line(line, width, lines);
    }
    if (end == text.size()) return lines;
    text.remove_prefix(end + 1);
  }
}

std::string padded(std::string_view text, std::size_t width, bool to_the_right) {
  const std::string spaces(width - std::min(width, length(text)), ' ');
  return to_the_right ? spaces + std::string(text) : std::string(text) + spaces;
}

void end_line(std::string line, std::string& out) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  out += line + "\n";
}

// The longest part of a title, which can be broken at spaces and behind "/".
std::size_t longest_part(std::string_view title) {
  std::size_t longest = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < title.size(); ++i) {
    if (title[i] == '/') longest = std::max(longest, i + 1 - begin);
    if (title[i] == ' ') longest = std::max(longest, i - begin);
    if (title[i] == '/' || title[i] == ' ') begin = i + 1;
  }
  return std::max(longest, title.size() - begin);
}

using Rows = std::vector<std::vector<std::string>>;

// Which columns stand side by side, how wide, and which beneath their row.
class Layout {
 public:
  Layout(const std::vector<TextTable::Column>& columns, const Rows& rows, std::size_t room)
      : columns_(columns), rows_(rows), room_(room) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      std::size_t cells = 0;
      for (const auto& row : rows) cells = std::max(cells, length(row[c]));
      cells_.push_back(cells);
      widths_.push_back(std::max(cells, length(columns[c].title)));
      least_.push_back(least_width(c));
      beside_.push_back(c);
    }
    while (beside_.size() > 1 && taken(least_) > room_) put_beneath();
    std::sort(beneath_.begin(), beneath_.end());
    while (taken(widths_) > room_ && narrow_widest()) {
    }
  }

  [[nodiscard]] std::string text(std::string_view indent) const {
    std::string out;
    print(
        indent, [&](std::size_t c) -> std::string_view { return columns_[c].title; }, out);
    std::string rule(indent);
    for (const std::size_t c : beside_) {
      if (c > 0) rule += std::string(between_columns, ' ');
      rule += std::string(widths_[c], '-');
    }
    end_line(std::move(rule), out);
    for (const auto& row : rows_) {
      print(
          indent, [&](std::size_t c) -> std::string_view { return row[c]; }, out);
      print_beneath(row, indent.size() + beneath_row, out);
    }
    return out;
  }

 private:
  [[nodiscard]] bool is_number(std::size_t column) const {
    return columns_[column].align == TextTable::Align::right;
  }
  // Text that needs lines of its own beneath a row.
  [[nodiscard]] bool is_long(std::size_t column) const {
    return !is_number(column) && cells_[column] > narrow;
  }

  [[nodiscard]] std::size_t least_width(std::size_t column) const {
    std::size_t least = cells_[column];
    if (column == 0) {
      least = std::min(least, std::max(narrow, room_ / 2));
    } else if (is_long(column)) {
      least = std::max(narrow, (cells_[column] + most_lines - 1) / most_lines);
    }
    return std::max(least, longest_part(columns_[column].title));
  }

  [[nodiscard]] std::size_t taken(const std::vector<std::size_t>& widths) const {
    const std::size_t gaps = between_columns * (beside_.size() - 1);
    return std::accumulate(beside_.begin(), beside_.end(), gaps,
                           [&](std::size_t sum, std::size_t c) { return sum + widths[c]; });
  }

  // The widest text, else the last column.
  void put_beneath() {
    auto goes = std::prev(beside_.end());
    for (auto c = std::next(beside_.begin()); c != beside_.end(); ++c) {
      if (is_long(*c) && (!is_long(*goes) || cells_[*c] >= cells_[*goes])) goes = c;
    }
    beneath_.push_back(*goes);
    beside_.erase(goes);
  }

  bool narrow_widest() {
    const auto can_give = [&](std::size_t c) { return widths_[c] > least_[c]; };
    auto widest = beside_.end();
    for (auto c = beside_.begin(); c != beside_.end(); ++c) {
      if (!can_give(*c)) continue;
      if (widest == beside_.end() || widths_[*c] > widths_[*widest]) widest = c;
    }
    if (widest == beside_.end()) return false;
    --widths_[*widest];
    return true;
  }

  template <class CellOf>
  void print(std::string_view indent, CellOf cell_of, std::string& out) const {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (const std::size_t c : beside_) {
      cells.push_back(lines_of(cell_of(c), widths_[c]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t i = 0; i < height; ++i) {
      std::string line(indent);
      for (std::size_t k = 0; k < beside_.size(); ++k) {
        if (k > 0) line += std::string(between_columns, ' ');
        const std::string_view part = i < cells[k].size() ? cells[k][i] : std::string_view();
        line += padded(part, widths_[beside_[k]], is_number(beside_[k]));
      }
      end_line(std::move(line), out);
    }
  }

  // Short cells side by side, as wide as their columns are; long ones wrapped.
  void print_beneath(const std::vector<std::string>& row, std::size_t indent,
                     std::string& out) const {
    const std::string spaces(indent, ' ');
    std::string line;
    const auto finish = [&] {
      if (!line.empty()) end_line(spaces + line, out);
      line.clear();
    };
    for (const std::size_t c : beneath_) {
      if (row[c].empty()) continue;
      const std::string title = columns_[c].title.empty() ? "" : columns_[c].title + " ";
      if (is_long(c)) {
        finish();
        std::string text = columns_[c].title.empty() ? "" : columns_[c].title + ": ";
        text += row[c];
        end_line(spaces + wrapped(text, indent, indent + room_ - beneath_row), out);
        continue;
      }
      const std::string cell = title + padded(row[c], cells_[c], is_number(c));
      if (!line.empty() && beneath_row + length(line) + between_columns + length(cell) > room_) {
        finish();
      }
      line += (line.empty() ? "" : std::string(between_columns, ' ')) + cell;
    }
    finish();
  }

  const std::vector<TextTable::Column>& columns_;
  const Rows& rows_;
  std::size_t room_;
  std::vector<std::size_t> cells_;   // of every column, the longest cell
  std::vector<std::size_t> widths_;  // of every column
  std::vector<std::size_t> least_;
  std::vector<std::size_t> beside_;
  std::vector<std::size_t> beneath_;
};

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  const std::size_t room = width > indent ? width - indent : 1;
  std::string out;
  for (const std::string& line : lines_of(text, std::max(room, narrow))) {
    out += (out.empty() ? "" : "\n" + std::string(indent, ' ')) + line;
  }
  return out;
}

void TextTable::add_row(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(std::string_view indent, std::size_t width) const {
  const std::size_t room = width > indent.size() ? width - indent.size() : 1;
  return Layout(columns_, rows_, room).text(indent);
}

std::string TextTable::markdown() const {
  std::string out = "|";
  for (const Column& column : columns_) out += " " + column.title + " |";
  out += "\n|";
  for (const Column& column : columns_) out += column.align == Align::right ? " ---: |" : " --- |";
  out += "\n";
  for (const auto& row : rows_) {
    out += "|";
    for (const std::string& cell : row) out += " " + cell + " |";
    out += "\n";
  }
  return out;
}

}  // namespace shardsim
