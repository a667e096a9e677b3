// The tables of a report, made once and printed as text, Markdown or HTML.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "reports/format/figures.hpp"

namespace shardsim {

struct Cell {
  std::string text;   // for people: "61.2 GiB"
  std::string value;  // plain number with all digits, as in the CSV; empty where text says it all
};

struct Table {
  std::string caption;
  std::vector<TextTable::Column> columns;
  std::vector<std::vector<Cell>> rows;
};

[[nodiscard]] std::string to_text(const Table& table, std::string_view indent = "  ",
                                  std::size_t width = default_text_width);
[[nodiscard]] std::string to_markdown(const Table& table);

// One row per configuration, with what differs between their workloads.
[[nodiscard]] Table comparison_table(const std::vector<Figures>& all);

// Of one configuration. Buffers and paddings beyond `limit` are summed up in a last row.
inline constexpr std::size_t default_row_limit = 10;
[[nodiscard]] Table memory_table(const Figures& figures);
[[nodiscard]] Table peak_buffer_table(const Figures& figures,
                                      std::size_t limit = default_row_limit);
[[nodiscard]] Table communication_table(const Figures& figures);
[[nodiscard]] Table padding_table(const Figures& figures, std::size_t limit = default_row_limit);
// Changes that make those fit that do not, or come nearest, each predicted; no rows where none were
// asked for.
[[nodiscard]] Table suggestion_table(const std::vector<Figures>& all);
// Those of the above that have something to say, in order of reading.
[[nodiscard]] std::vector<Table> run_tables(const Figures& figures);

// What a reader wants first: (label, value) pairs, the memory verdict last.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> summary(const Figures& figures);
// "llama-3.1-8b train step, fsdp on fsdp=8"
[[nodiscard]] std::string title_of(const Figures& figures);
// "dgx-h100 (8 devices, 1 node; H100 SXM5 80 GB)"
[[nodiscard]] std::string machine_line(const Figures& figures);

// Warnings or notes of all configurations, each once: "fsdp, tp: text" where not all say it.
[[nodiscard]] std::vector<std::string> remarks_of(const std::vector<Figures>& all,
                                                  std::vector<std::string> Figures::*kind);

// "\nNotes\n  - text": in lines of `width` characters; empty without lines.
[[nodiscard]] std::string text_remarks(std::string_view heading,
                                       const std::vector<std::string>& lines, std::size_t width);

// User text made harmless in Markdown.
[[nodiscard]] std::string markdown_escape(std::string_view text);

}  // namespace shardsim
