#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/json.hpp"
#include "base/version.hpp"
#include "checks/check_report.hpp"
#include "checks/metric.hpp"
#include "checks/report_parts.hpp"

namespace shardsim {
namespace {

Json number_of(const std::string& metric, double value) {
  switch (unit_of(metric)) {
    case MetricUnit::flag:
      return value > 0;
    case MetricUnit::seconds:
      return value;
    case MetricUnit::bytes:
    case MetricUnit::count:
      break;
  }
  return std::llround(value);
}

Json finding_json(const CheckedExperiment& checked, const CheckFinding& finding) {
  Json json = {
      {"experiment", checked.name}, {"metric", finding.metric},
      {"baseline", nullptr},        {"now", number_of(finding.metric, finding.now)},
      {"limit", finding.limit},     {"cause", fmt::format("{}", fmt::join(finding.causes, ". "))},
      {"causes", finding.causes}};
  if (finding.baseline) json["baseline"] = number_of(finding.metric, *finding.baseline);
  if (!checked.file.empty()) json["file"] = checked.file;
  return json;
}

}  // namespace

std::string check_json(const CheckReport& report) {
  Json violations = Json::array();
  Json improvements = Json::array();
  for (const CheckedExperiment& checked : report.experiments) {
    for (const CheckFinding& one : checked.violations)
      violations.push_back(finding_json(checked, one));
    for (const CheckFinding& one : checked.improvements) {
      improvements.push_back(finding_json(checked, one));
    }
  }
  Json json = {{"schema", "shardsim/check/1"},
               {"shardsim", program_version},
               {"baseline", report.baseline},
               {"checked", report.experiments.size()}};
  json["violations"] = std::move(violations);
  json["improvements"] = std::move(improvements);
  json["new"] = names_of(report, [](const CheckedExperiment& one) { return one.is_new; });
  json["gone"] = report.gone;
  if (!report.idle_limits.empty()) json["idle_limits"] = report.idle_limits;
  if (!report.recorded.empty()) json["recorded"] = report.recorded;
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shardsim
