#include "reports/step/markdown_report.hpp"

#include <fmt/format.h>

#include "reports/format/known_error.hpp"
#include "reports/format/tables.hpp"
#include "reports/format/verdict.hpp"

namespace shardsim {
namespace {

std::string markdown_remarks(std::string_view heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string text = fmt::format("\n### {}\n\n", heading);
  for (const std::string& line : lines) text += fmt::format("- {}\n", markdown_escape(line));
  return text;
}

std::string table_section(const Table& table) {
  return fmt::format("\n### {}\n\n{}", markdown_escape(table.caption), to_markdown(table));
}

}  // namespace

std::string markdown_run(const Figures& figures) {
  std::string text = fmt::format("## {}: {}\n\n", markdown_escape(figures.name),
                                 markdown_escape(title_of(figures)));
  for (const auto& [label, value] : summary(figures)) {
    text += fmt::format("- **{}**: {}\n", markdown_escape(label), markdown_escape(value));
  }
  const Table suggestions = suggestion_table({figures});
  if (!suggestions.rows.empty()) text += table_section(suggestions);
  for (const Table& table : run_tables(figures)) text += table_section(table);
  text += markdown_remarks("Warnings", figures.warnings);
  text += markdown_remarks("Notes", figures.notes);
  return text;
}

std::string markdown_comparison(const std::vector<Figures>& all, const Choice& choice) {
  std::string text = "## Comparison\n\n" + to_markdown(comparison_table(all));
  const char* heading = choice.best < 0 ? "No choice" : choice.ties.empty() ? "Best" : "Tie";
  text += fmt::format("\n**{}**: {}\n", heading, markdown_escape(choice.why));
  if (const std::string error = known_error_text(all); !error.empty()) {
    text += fmt::format("\nKnown error: {}\n", markdown_escape(error));
  }
  for (const Figures& figures : all) {
    if (figures.fits) continue;
    text += fmt::format("\n{} {}\n", markdown_escape(figures.name),
                        markdown_escape(memory_verdict(figures)));
  }
  const Table suggestions = suggestion_table(all);
  if (!suggestions.rows.empty()) text += table_section(suggestions);
  text += markdown_remarks("Warnings", remarks_of(all, &Figures::warnings));
  text += markdown_remarks("Notes", remarks_of(all, &Figures::notes));
  return text;
}

}  // namespace shardsim
