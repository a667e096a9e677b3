#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "checks/check_report.hpp"
#include "checks/metric.hpp"
#include "checks/report_parts.hpp"

namespace shardsim {
namespace {

constexpr std::size_t page_width = 100;

// Broken at spaces; lines after the first are indented.
std::string paragraph(const std::string& text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    if (column > indent && column + 1 + length > page_width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(begin, length);
    column += length;
    begin = end + 1;
  }
  return out;
}

std::string finding_table(const std::vector<CheckFinding>& findings) {
  using Align = TextTable::Align;
  TextTable table({{"metric"},
                   {"baseline", Align::right},
                   {"now", Align::right},
                   {"change", Align::right},
                   {"limit"}});
  for (const CheckFinding& finding : findings) {
    table.add_row({metric_label(finding.metric), baseline_cell(finding),
                   format_metric(finding.metric, finding.now), change_cell(finding),
                   finding.limit});
  }
  return table.text("  ");
}

std::string experiment_text(const CheckedExperiment& checked) {
  std::string out;
  if (!checked.violations.empty()) {
    out +=
        fmt::format("\n{}: over its limits\n{}", checked.name, finding_table(checked.violations));
    for (const std::string& cause : causes_of(checked)) {
      out += fmt::format("  - {}\n", paragraph(cause, 4));
    }
  }
  if (!checked.improvements.empty()) {
    out += fmt::format("\n{}: improved\n{}", checked.name, finding_table(checked.improvements));
    if (checked.violations.empty()) {
      out += fmt::format("  - {}\n", paragraph(checked.improvements.front().causes.front(), 4));
    }
  }
  return out;
}

std::string name_list(const char* label, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return paragraph(fmt::format("{}: {}", label, fmt::join(names, ", ")), 2) + "\n";
}

}  // namespace

std::string check_text(const CheckReport& report) {
  std::string out = fmt::format("{}: {}\n", report.baseline, summary_line(report));
  for (const CheckedExperiment& checked : report.experiments) out += experiment_text(checked);
  std::string rest =
      name_list("within limits", names_of(report, [](const CheckedExperiment& one) {
                  return one.violations.empty() && one.improvements.empty() && one.before;
                }));
  rest += name_list("in the baseline now", report.recorded);
  if (report.recorded.empty()) {
    rest += name_list("not in the baseline (--update records it)",
                      names_of(report, [](const CheckedExperiment& one) { return one.is_new; }));
  }
  rest += name_list("in the baseline, but not among the dumps", report.gone);
  rest += name_list("budgets of what is not checked here", report.idle_limits);
  if (!rest.empty()) out += "\n" + rest;
  const std::string command = update_command(report);
  if (!command.empty() && report.recorded.empty())
    out += fmt::format("\nto accept what is now:  {}\n", command);
  return out;
}

}  // namespace shardsim
