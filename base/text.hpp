// Quantities and tables as people read them.
//
//   parse_bandwidth("450 GB/s", place) == Bandwidth{450e9}     "450" alone is an error: no unit
//   format_bytes(Bytes{436'207'616})   == "416.0 MiB"
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"

namespace shardsim {

// Text with its unit: decimal (kB, MB, GB, TB) and binary (KiB, MiB, GiB, TiB) prefixes, "/s" for
// rates, FLOP/s (with k, M, G, T, P), and s, ms, us, ns, ps. Throws InputError without a unit, with
// an unknown one, and for a negative or non-finite number.
[[nodiscard]] Bytes parse_bytes(std::string_view text, const Place& place);
[[nodiscard]] Bandwidth parse_bandwidth(std::string_view text, const Place& place);
[[nodiscard]] FlopRate parse_flop_rate(std::string_view text, const Place& place);
[[nodiscard]] Seconds parse_seconds(std::string_view text, const Place& place);
[[nodiscard]] Power parse_power(std::string_view text, const Place& place);    // "700 W"
[[nodiscard]] Energy parse_energy(std::string_view text, const Place& place);  // "1.2 pJ"

[[nodiscard]] std::string format_bytes(Bytes bytes);         // "416.0 MiB", "512 B"
[[nodiscard]] std::string format_seconds(Seconds duration);  // "1.234 s", "56.70 ms", "8.900 us"
[[nodiscard]] std::string format_bandwidth(Bandwidth rate);  // "450.0 GB/s"
[[nodiscard]] std::string format_flop_rate(FlopRate rate);   // "989.4 TFLOP/s"
[[nodiscard]] std::string format_count(std::int64_t count);  // "8,030,261,248"
[[nodiscard]] std::string counted(std::int64_t count,
                                  std::string_view noun);                     // "1 node", "8 nodes"
[[nodiscard]] std::string dims_text(const std::vector<std::int64_t>& shape);  // "[128, 4096]"
// Ascending: 0, 1, 2, 5 is "0-2,5".
[[nodiscard]] std::string number_ranges(const std::vector<std::int64_t>& numbers);
[[nodiscard]] std::string format_percent(double fraction);  // "41.3 %"
[[nodiscard]] std::string format_flops(Flops flops);        // "1.234 PFLOP"

// Characters in a line of text for people. The library asks no terminal: who prints says how wide.
inline constexpr std::size_t default_text_width = 120;
inline constexpr std::size_t unlimited_text_width = std::string::npos;

// Broken at spaces into lines that end before column `width`; the first begins at column `indent`,
// the others with as many spaces. A word that fits no line is broken behind punctuation, or
// anywhere. Text with line breaks keeps them.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

// Rows of cells, printed with aligned columns; numbers (as told by the column) to the right.
//
// A table that is wider than the text loses nothing: its widest columns to the left are wrapped,
// then titles; what still has no place goes beneath its row, with its title:
//
//   kind        group     time
//   ----------  -----  -------
//   all-gather      8  5.64 ms
//       why: parameters of model.layers.{} are stored over fsdp
//
// The first column names the row and stays. Numbers are never broken, so that a line can be longer
// than the text is wide where the numbers alone are.
class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] std::string text(std::string_view indent = {},
                                 std::size_t width = default_text_width) const;
  [[nodiscard]] std::string markdown() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// One CSV field, quoted where RFC 4180 asks for it.
[[nodiscard]] std::string csv_field(std::string_view text);

}  // namespace shardsim
