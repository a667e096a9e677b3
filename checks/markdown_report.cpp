#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"
#include "checks/check_report.hpp"
#include "checks/metric.hpp"
#include "checks/report_parts.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {
namespace {

// GitHub refuses comments of more than 65,536 characters.
constexpr std::size_t most_bytes = 59000;
constexpr std::size_t longest_name = 120;
constexpr std::size_t longest_cause = 600;
constexpr std::size_t rows_shown = 100;

std::string cell(const std::string& text) {
  return markdown_escape(shortened_text(as_utf8(text), longest_name));
}

std::string table_row(const CheckedExperiment& checked, const CheckFinding& finding) {
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", cell(checked.name),
                     cell(metric_label(finding.metric)), baseline_cell(finding),
                     format_metric(finding.metric, finding.now), change_cell(finding),
                     cell(finding.limit));
}

constexpr const char* table_head =
    "| experiment | metric | baseline | now | change | limit |\n"
    "|---|---|---:|---:|---:|---|\n";

// The text so far, of which parts are left out once it is full.
class Page {
 public:
  void add(const std::string& text) { text_ += text; }
  // False: there is no room for it.
  bool add_if_room(const std::string& text) {
    if (text_.size() + text.size() > most_bytes) return false;
    text_ += text;
    return true;
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

using Findings = std::vector<CheckFinding> CheckedExperiment::*;

std::size_t add_rows(const CheckReport& report, Findings findings, Page& page) {
  std::size_t rows = 0;
  std::size_t left_out = 0;
  for (const CheckedExperiment& checked : report.experiments) {
    for (const CheckFinding& finding : checked.*findings) {
      const bool fits = rows < rows_shown && page.add_if_room(table_row(checked, finding));
      fits ? ++rows : ++left_out;
    }
  }
  return left_out;
}

void add_table(const CheckReport& report, Findings findings, Page& page) {
  page.add(table_head);
  const std::size_t left_out = add_rows(report, findings, page);
  if (left_out > 0) page.add(fmt::format("\n{} more are left out here.\n", left_out));
}

std::string causes_folded(const CheckedExperiment& checked) {
  std::string text = fmt::format("\n<details><summary>Why: {}</summary>\n\n", cell(checked.name));
  for (const std::string& cause : causes_of(checked)) {
    text += fmt::format("- {}\n", markdown_escape(shortened_text(as_utf8(cause), longest_cause)));
  }
  return text + "\n</details>\n";
}

void add_causes(const CheckReport& report, Page& page) {
  std::size_t left_out = 0;
  for (const CheckedExperiment& checked : report.experiments) {
    if (checked.violations.empty()) continue;
    if (!page.add_if_room(causes_folded(checked))) ++left_out;
  }
  if (left_out == 0) return;
  page.add(fmt::format("\nThe causes of {} are left out here; the other formats have them.\n",
                       counted(static_cast<std::int64_t>(left_out), "experiment")));
}

void add_names(const char* label, const std::vector<std::string>& names, Page& page) {
  constexpr std::size_t shown = 20;
  if (names.empty()) return;
  std::string text = fmt::format("\n{}: ", label);
  for (std::size_t i = 0; i < names.size() && i < shown; ++i) {
    text += (i == 0 ? "" : ", ") + cell(names[i]);
  }
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  static_cast<void>(page.add_if_room(text + "\n"));
}

}  // namespace

std::string check_markdown(const CheckReport& report) {
  Page page;
  page.add(fmt::format("### shardsim: {}\n", summary_line(report)));
  if (report.violations() > 0) {
    page.add("\n");
    add_table(report, &CheckedExperiment::violations, page);
    add_causes(report, page);
  }
  if (report.improvements() > 0) {
    page.add(fmt::format("\n<details><summary>{}</summary>\n\n",
                         counted(static_cast<std::int64_t>(report.improvements()), "improvement")));
    add_table(report, &CheckedExperiment::improvements, page);
    page.add("\n</details>\n");
  }
  add_names("Not in the baseline",
            names_of(report, [](const CheckedExperiment& one) { return one.is_new; }), page);
  add_names("In the baseline, but not among the dumps", report.gone, page);
  add_names("Budgets of what is not checked here", report.idle_limits, page);
  const std::string command = update_command(report);
  const bool is_plain = command.find_first_of("`\n") == std::string::npos;
  if (!command.empty() && is_plain) {
    static_cast<void>(page.add_if_room(fmt::format("\nTo accept what is now: `{}`\n", command)));
  }
  return page.take();
}

}  // namespace shardsim
