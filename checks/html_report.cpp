#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "checks/check_report.hpp"
#include "checks/html/resources.hpp"
#include "checks/metric.hpp"
#include "checks/report_parts.hpp"
#include "reports/format/figures.hpp"
#include "reports/format/html.hpp"

namespace shardsim {
namespace {

constexpr std::size_t most_charted = 12;

using FindingList = std::vector<CheckFinding> CheckedExperiment::*;

// Experiments with something to show, those over their limits first.
std::vector<const CheckedExperiment*> charted(const CheckReport& report) {
  std::vector<const CheckedExperiment*> all;
  for (const CheckedExperiment& one : report.experiments) all.push_back(&one);
  const auto rank = [](const CheckedExperiment& one) {
    if (!one.violations.empty()) return 0;
    return one.improvements.empty() ? 2 : 1;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto* a, const auto* b) { return rank(*a) < rank(*b); });
  std::erase_if(all, [](const auto* one) { return !one->now.holds_figures(); });
  if (all.size() > most_charted) all.resize(most_charted);
  return all;
}

std::set<std::string> kinds_of(const std::vector<const CheckedExperiment*>& experiments) {
  std::set<std::string> kinds;
  for (const CheckedExperiment* one : experiments) {
    for (const auto& [row, traffic] : one->now.communication) kinds.emplace(kind_of_part(row));
    if (!one->before) continue;
    for (const auto& [row, traffic] : one->before->communication) kinds.emplace(kind_of_part(row));
  }
  return kinds;
}

// Null where the step was not simulated. Baselines that are older than one of the parts lack it.
Json times_of(const Recorded& recorded) {
  Json values = Json::array();
  bool any = false;
  for (const char* part :
       {"compute_time_s", "contention_time_s", "exposed_communication_s", "idle_time_s"}) {
    const auto found = recorded.values.find(part);
    any = any || found != recorded.values.end();
    values.push_back(found == recorded.values.end() ? 0 : found->second);
  }
  return any ? values : Json(nullptr);
}

Json bars_of(const Recorded& recorded, const std::set<std::string>& kinds) {
  Json memory = Json::array();
  for (const BufferCategory category : categories_in_reports) {
    const auto found = recorded.by_category.find(category_key(category));
    memory.push_back(found == recorded.by_category.end() ? 0 : found->second);
  }
  Json traffic = Json::array();
  for (const std::string& kind : kinds) {
    std::int64_t bytes = 0;
    for (const auto& [row, one] : recorded.communication) {
      if (kind_of_part(row) == kind) bytes += one.wire.count();
    }
    traffic.push_back(bytes);
  }
  Json bars = {{"times_s", times_of(recorded)}, {"memory_bytes", nullptr}, {"wire_bytes", nullptr}};
  if (!recorded.by_category.empty()) bars["memory_bytes"] = std::move(memory);
  if (!recorded.communication.empty()) bars["wire_bytes"] = std::move(traffic);
  return bars;
}

Json chart_data(const std::vector<const CheckedExperiment*>& experiments) {
  const std::set<std::string> kinds = kinds_of(experiments);
  Json data = {
      {"categories", Json::array()}, {"kinds", Json::array()}, {"experiments", Json::array()}};
  for (const BufferCategory category : categories_in_reports) {
    data["categories"].push_back(
        {{"key", category_key(category)}, {"label", category_label(category)}});
  }
  for (const std::string& kind : kinds) data["kinds"].push_back({{"key", kind}, {"label", kind}});
  for (const CheckedExperiment* one : experiments) {
    Json row = {{"name", one->name}, {"before", nullptr}, {"now", bars_of(one->now, kinds)}};
    if (one->before) row["before"] = bars_of(*one->before, kinds);
    data["experiments"].push_back(std::move(row));
  }
  return data;
}

Table finding_rows(const CheckReport& report, FindingList findings, const char* caption) {
  using Align = TextTable::Align;
  Table table{caption,
              {{"experiment"},
               {"metric"},
               {"baseline", Align::right},
               {"now", Align::right},
               {"change", Align::right},
               {"limit"}},
              {}};
  for (const CheckedExperiment& checked : report.experiments) {
    for (const CheckFinding& finding : checked.*findings) {
      const std::string was = finding.baseline ? plain_number(*finding.baseline) : "";
      table.rows.push_back({{checked.name, ""},
                            {metric_label(finding.metric), ""},
                            {baseline_cell(finding), was},
                            {format_metric(finding.metric, finding.now), plain_number(finding.now)},
                            {change_cell(finding), ""},
                            {finding.limit, ""}});
    }
  }
  return table;
}

// What made each worse; empty where nothing is.
std::string causes_section(const CheckReport& report) {
  if (report.violations() == 0) return {};
  std::string out = "<section class=\"unbroken\">\n<h2>Why</h2>\n";
  for (const CheckedExperiment& checked : report.experiments) {
    if (checked.violations.empty()) continue;
    out += fmt::format("<h3>{}</h3>\n<ul>\n", html_escape(checked.name));
    for (const std::string& cause : causes_of(checked)) {
      out += fmt::format("<li>{}</li>\n", html_escape(cause));
    }
    out += "</ul>\n";
  }
  return out + "</section>\n\n";
}

std::string finding_section(const CheckReport& report, FindingList findings, const char* title) {
  const Table table = finding_rows(report, findings, "By experiment");
  if (table.rows.empty()) return {};
  return fmt::format("<section class=\"unbroken\">\n<h2>{}</h2>\n{}</section>\n\n", title,
                     to_html(table));
}

std::string rest_section(const CheckReport& report) {
  std::string out;
  const auto list = [&](const char* label, const std::vector<std::string>& names) {
    if (names.empty()) return;
    out += fmt::format("<p>{}: {}</p>\n", label,
                       html_escape(fmt::format("{}", fmt::join(names, ", "))));
  };
  list("Within limits", names_of(report, [](const CheckedExperiment& one) {
         return one.violations.empty() && one.improvements.empty() && one.before.has_value();
       }));
  list("Not in the baseline",
       names_of(report, [](const CheckedExperiment& one) { return one.is_new; }));
  list("In the baseline, but not among the dumps", report.gone);
  if (out.empty()) return {};
  return "<section>\n<h2>The others</h2>\n" + out + "</section>\n";
}

}  // namespace

std::string check_html(const CheckReport& report) {
  const std::vector<const CheckedExperiment*> shown = charted(report);
  const std::string command = update_command(report);
  const bool all_shown = shown.size() == report.experiments.size();
  const std::string which =
      all_shown ? "" : fmt::format("The first {}, those over their limits first.", shown.size());
  return fill(
      resources::check_html,
      {{"opening",
        html_opening("Check of " + report.baseline, "cost estimates against a baseline")},
       {"bad", report.violations() > 0 ? " bad" : ""},
       {"summary", html_escape(summary_line(report))},
       {"command", command.empty() ? "" : "To accept what is now: " + html_escape(command)},
       {"violations", finding_section(report, &CheckedExperiment::violations, "Over the limits")},
       {"causes", causes_section(report)},
       {"improvements", finding_section(report, &CheckedExperiment::improvements, "Improvements")},
       {"charts", fill(resources::check_charts_html, {{"which", which}})},
       {"rest", rest_section(report)},
       {"end", html_end(chart_data(shown), resources::check_js)}});
}

}  // namespace shardsim
