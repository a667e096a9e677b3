// Quantities and tables as people read them.
//
//   parse_bandwidth("450 GB/s", place) == Bandwidth{450e9}     "450" alone is an error: no unit
//   format_bytes(Bytes{436'207'616})   == "416.0 MiB"
#pragma once

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

[[nodiscard]] std::string format_bytes(Bytes bytes);         // "416.0 MiB", "512 B"
[[nodiscard]] std::string format_seconds(Seconds duration);  // "1.234 s", "56.70 ms", "8.900 us"
[[nodiscard]] std::string format_bandwidth(Bandwidth rate);  // "450.0 GB/s"
[[nodiscard]] std::string format_flop_rate(FlopRate rate);   // "989.4 TFLOP/s"
[[nodiscard]] std::string format_count(std::int64_t count);  // "8,030,261,248"
[[nodiscard]] std::string counted(std::int64_t count,
                                  std::string_view noun);                     // "1 node", "8 nodes"
[[nodiscard]] std::string dims_text(const std::vector<std::int64_t>& shape);  // "[128, 4096]"
[[nodiscard]] std::string format_percent(double fraction);                    // "41.3 %"
[[nodiscard]] std::string format_flops(Flops flops);                          // "1.234 PFLOP"

// Rows of cells, printed with aligned columns; numbers (as told by the column) to the right.
class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] std::string text(std::string_view indent = {}) const;
  [[nodiscard]] std::string markdown() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// One CSV field, quoted where RFC 4180 asks for it.
[[nodiscard]] std::string csv_field(std::string_view text);

}  // namespace shardsim
