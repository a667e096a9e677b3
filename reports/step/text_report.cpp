#include "reports/step/text_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "reports/format/known_error.hpp"
#include "reports/format/tables.hpp"
#include "reports/format/verdict.hpp"

namespace shardsim {

std::string text_run(const Figures& figures, std::size_t width) {
  std::string text = wrapped(fmt::format("{}: {}", figures.name, title_of(figures)), 0, width);
  text += "\n\n";
  const auto lines = summary(figures);
  std::size_t labels = 0;
  for (const auto& [label, value] : lines) labels = std::max(labels, label.size());
  for (const auto& [label, value] : lines) {
    text += fmt::format("  {:<{}}  {}\n", label, labels, wrapped(value, labels + 4, width));
  }
  std::vector<Table> tables = run_tables(figures);
  const Table suggestions = suggestion_table({figures});
  if (!suggestions.rows.empty()) tables.insert(tables.begin(), suggestions);
  for (const Table& table : tables) {
    text += fmt::format("\n{}\n{}", wrapped(table.caption, 0, width), to_text(table, "  ", width));
  }
  text += text_remarks("Warnings", figures.warnings, width);
  text += text_remarks("Notes", figures.notes, width);
  return text;
}

std::string text_comparison(const std::vector<Figures>& all, const Choice& choice,
                            std::size_t width) {
  std::string text = to_text(comparison_table(all), "", width) + "\n";
  const auto add = [&](const std::string& line) { text += wrapped(line, 0, width) + "\n"; };
  add(choice.best >= 0 && choice.ties.empty() ? "best: " + choice.why : choice.why);
  if (const std::string error = known_error_text(all); !error.empty()) {
    add("known error: " + error);
  }
  for (const Figures& figures : all) {
    if (!figures.fits) add(fmt::format("{} {}", figures.name, memory_verdict(figures)));
  }
  const Table suggestions = suggestion_table(all);
  if (!suggestions.rows.empty()) {
    text += fmt::format("\n{}\n{}", suggestions.caption, to_text(suggestions, "  ", width));
  }
  text += text_remarks("Warnings", remarks_of(all, &Figures::warnings), width);
  text += text_remarks("Notes", remarks_of(all, &Figures::notes), width);
  return text;
}

}  // namespace shardsim
