#include "reports/text_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "reports/tables.hpp"
#include "reports/verdict.hpp"

namespace shardsim {
namespace {

std::string text_remarks(std::string_view heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string text = fmt::format("\n{}\n", heading);
  for (const std::string& line : lines) text += fmt::format("  - {}\n", line);
  return text;
}

}  // namespace

std::string text_run(const Figures& figures) {
  std::string text = fmt::format("{}: {}\n\n", figures.name, title_of(figures));
  const auto lines = summary(figures);
  std::size_t width = 0;
  for (const auto& [label, value] : lines) width = std::max(width, label.size());
  for (const auto& [label, value] : lines) {
    text += fmt::format("  {:<{}}  {}\n", label, width, value);
  }
  for (const Table& table : run_tables(figures)) {
    text += fmt::format("\n{}\n{}", table.caption, to_text(table));
  }
  text += text_remarks("Warnings", figures.warnings);
  text += text_remarks("Notes", figures.notes);
  return text;
}

std::string text_comparison(const std::vector<Figures>& all, const Choice& choice) {
  std::string text = to_text(comparison_table(all), "");
  text += fmt::format("\n{}{}\n", choice.best >= 0 ? "best: " : "", choice.why);
  for (const Figures& figures : all) {
    if (!figures.fits) text += fmt::format("{} {}\n", figures.name, memory_verdict(figures));
  }
  text += text_remarks("Warnings", remarks_of(all, &Figures::warnings));
  text += text_remarks("Notes", remarks_of(all, &Figures::notes));
  return text;
}

}  // namespace shardsim
