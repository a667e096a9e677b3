#include "checks/report_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "checks/metric.hpp"

namespace shardsim {
namespace {

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=:,@";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string summary_line(const CheckReport& report) {
  const std::size_t over =
      names_of(report, [](const CheckedExperiment& one) { return !one.violations.empty(); }).size();
  const auto all = static_cast<std::int64_t>(report.experiments.size());
  if (!report.recorded.empty()) return "recorded " + counted(all, "experiment");
  std::string text =
      over == 0 ? fmt::format("{} within limits", counted(all, "experiment"))
                : fmt::format("{} of {} over their limits: {}", over, counted(all, "experiment"),
                              counted(static_cast<std::int64_t>(report.violations()), "violation"));
  if (report.improvements() > 0) {
    text += "; " + counted(static_cast<std::int64_t>(report.improvements()), "improvement");
  }
  return text;
}

std::string baseline_cell(const CheckFinding& finding) {
  return finding.baseline ? format_metric(finding.metric, *finding.baseline) : "-";
}

std::string change_cell(const CheckFinding& finding) {
  if (!finding.baseline || *finding.baseline == finding.now) return "-";
  return format_change(finding.metric, *finding.baseline, finding.now);
}

std::string finding_line(const CheckFinding& finding) {
  const std::string now = format_metric(finding.metric, finding.now);
  if (!finding.baseline) {
    return fmt::format("{}: {}, limit {}", metric_label(finding.metric), now, finding.limit);
  }
  return fmt::format("{}: {} -> {}, {}, limit {}", metric_label(finding.metric),
                     baseline_cell(finding), now, change_cell(finding), finding.limit);
}

std::vector<std::string> causes_of(const CheckedExperiment& checked) {
  std::vector<std::string> causes;
  for (const CheckFinding& finding : checked.violations) {
    for (const std::string& cause : finding.causes) {
      if (std::find(causes.begin(), causes.end(), cause) == causes.end()) causes.push_back(cause);
    }
  }
  return causes;
}

std::vector<std::string> names_of(const CheckReport& report,
                                  bool (*chosen)(const CheckedExperiment&)) {
  std::vector<std::string> names;
  for (const CheckedExperiment& one : report.experiments) {
    if (chosen(one)) names.push_back(one.name);
  }
  return names;
}

std::string update_command(const CheckReport& report) {
  const std::vector<std::string> changed = names_of(report, [](const CheckedExperiment& one) {
    return one.before && (!one.violations.empty() || !one.improvements.empty());
  });
  if (changed.empty()) return {};
  std::string command = "shardsim check " + shell_word(report.baseline);
  constexpr std::size_t named = 3;
  if (changed.size() > named) return command + " --update";
  for (const std::string& name : changed) command += " --update=" + shell_word(name);
  return command;
}

std::string as_utf8(const std::string& text) {
  const Json json = text;
  return Json::parse(json.dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

std::string shortened_text(std::string_view text, std::size_t longest) {
  constexpr std::string_view dots = "...";
  if (text.size() <= longest) return std::string(text);
  std::size_t end = longest - dots.size();
  const auto continues = [&](std::size_t at) {
    constexpr unsigned mask = 0xC0;
    constexpr unsigned continuation = 0x80;
    return (static_cast<unsigned char>(text[at]) & mask) == continuation;
  };
  while (end > 0 && continues(end)) --end;
  return std::string(text.substr(0, end)) + std::string(dots);
}

}  // namespace shardsim
