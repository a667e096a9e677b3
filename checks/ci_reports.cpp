// What CI systems read: JUnit's XML, GitLab's code quality, GitHub's workflow commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.hpp"
#include "checks/check_report.hpp"
#include "checks/digest.hpp"
#include "checks/metric.hpp"
#include "checks/report_parts.hpp"
#include "reports/format/html.hpp"

namespace shardsim {
namespace {

// XML 1.0 has no way to write most control characters.
std::string xml_text(const std::string& text) {
  std::string allowed = as_utf8(text);
  for (char& c : allowed) {
    const bool is_control = static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t';
    if (is_control) c = '?';
  }
  return html_escape(allowed);
}

std::string junit_case(const CheckedExperiment& checked) {
  std::string out = fmt::format("  <testcase classname=\"{}\" name=\"{}\"",
                                xml_text(checked.file.empty() ? "shardsim" : checked.file),
                                xml_text(checked.name));
  if (checked.violations.empty()) return out + "/>\n";
  std::vector<std::string> lines;
  for (const CheckFinding& finding : checked.violations) lines.push_back(finding_line(finding));
  const std::string first = lines.front();
  lines.emplace_back();
  for (const std::string& cause : causes_of(checked)) lines.push_back(cause);
  return out + fmt::format(
                   ">\n    <failure type=\"limit\" message=\"{}\">{}</failure>\n"
                   "  </testcase>\n",
                   xml_text(first), xml_text(fmt::format("{}", fmt::join(lines, "\n"))));
}

// Of the data of a command, and of its properties.
std::string command_escape(const std::string& text, bool is_property) {
  std::string out;
  for (const char c : text) {
    const bool escapes =
        c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    if (escapes) {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out;
}

std::string place_of(const CheckReport& report, const CheckedExperiment& checked) {
  return checked.file.empty() ? report.baseline : checked.file;
}

}  // namespace

std::string check_junit(const CheckReport& report) {
  const std::size_t failures =
      names_of(report, [](const CheckedExperiment& one) { return !one.violations.empty(); }).size();
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites tests=\"{0}\" failures=\"{1}\">\n"
      "<testsuite name=\"shardsim check {2}\" tests=\"{0}\" failures=\"{1}\" errors=\"0\" "
      "skipped=\"0\">\n",
      report.experiments.size(), failures, xml_text(report.baseline));
  for (const CheckedExperiment& checked : report.experiments) out += junit_case(checked);
  return out + "</testsuite>\n</testsuites>\n";
}

std::string check_gitlab(const CheckReport& report) {
  Json issues = Json::array();
  for (const CheckedExperiment& checked : report.experiments) {
    for (const CheckFinding& finding : checked.violations) {
      const std::string what = fmt::format("{}: {}", checked.name, finding_line(finding));
      const std::string cause = finding.causes.empty() ? "" : "; " + finding.causes.front();
      const std::string identity =
          fmt::format("{}\n{}\n{}", checked.name, finding.metric, finding.limit);
      issues.push_back(
          {{"description", what + cause},
           {"check_name", "shardsim/" + std::string(metric_family(finding.metric))},
           {"fingerprint", text_digest(identity)},
           {"severity", report.warn_only ? "minor" : "major"},
           {"location", {{"path", place_of(report, checked)}, {"lines", {{"begin", 1}}}}}});
    }
  }
  return issues.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::string check_annotations(const CheckReport& report) {
  std::string out;
  for (const CheckedExperiment& checked : report.experiments) {
    if (checked.violations.empty()) continue;
    std::vector<std::string> lines;
    for (const CheckFinding& finding : checked.violations) lines.push_back(finding_line(finding));
    for (const std::string& cause : causes_of(checked)) lines.push_back("- " + cause);
    out += fmt::format("::{} file={},line=1,title={}::{}\n", report.warn_only ? "warning" : "error",
                       command_escape(place_of(report, checked), /*is_property=*/true),
                       command_escape("shardsim: " + checked.name, /*is_property=*/true),
                       command_escape(fmt::format("{}", fmt::join(lines, "\n")),
                                      /*is_property=*/false));
  }
  return out;
}

}  // namespace shardsim
