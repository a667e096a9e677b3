#include "checks/metric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"

namespace shardsim {
namespace {

struct Family {
  const char* name;
  MetricUnit unit;
  const char* label;
  bool parts;
};

constexpr std::array families{
    Family{"step_time_s", MetricUnit::seconds, "step time", false},
    Family{"exposed_communication_s", MetricUnit::seconds, "exposed communication", false},
    Family{"fits", MetricUnit::flag, "fits", false},
    Family{"peak_bytes", MetricUnit::bytes, "peak memory", false},
    Family{"by_category", MetricUnit::bytes, "memory at the peak", true},
    Family{"wire_bytes", MetricUnit::bytes, "bytes sent", true},
    Family{"calls", MetricUnit::count, "calls", true},
    Family{"parameter_bytes", MetricUnit::bytes, "parameters on a device", false},
    Family{"replicated_parameters", MetricUnit::count, "parameters whole everywhere", false},
    Family{"newly_replicated_parameters", MetricUnit::count, "parameters newly whole everywhere",
           false},
    Family{"newly_unmatched_rules", MetricUnit::count, "rules that newly match nothing", false}};

const Family& family_of(std::string_view metric) {
  const std::string_view name = metric_family(metric);
  const auto* found = std::find_if(families.begin(), families.end(),
                                   [&](const Family& one) { return name == one.name; });
  return found == families.end() ? families.back() : *found;
}

constexpr std::string_view over_axes = " over ";

Bytes whole_bytes(double value) { return Bytes(std::llround(value)); }

}  // namespace

std::string_view metric_family(std::string_view metric) {
  return metric.substr(0, metric.find('.'));
}

const std::vector<std::string>& metric_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Family& family : families) list.emplace_back(family.name);
    return list;
  }();
  return names;
}

bool has_parts(std::string_view family) { return family_of(family).parts; }

std::string traffic_part(std::string_view kind, std::string_view over) {
  return fmt::format("{}{}{}", kind, over_axes, over);
}

std::string_view kind_of_part(std::string_view part) {
  return part.substr(0, part.find(over_axes));
}

std::string_view axes_of_part(std::string_view part) {
  const std::size_t at = part.find(over_axes);
  return at == std::string_view::npos ? std::string_view() : part.substr(at + over_axes.size());
}

bool is_over_axes(std::string_view part) { return part.find(over_axes) != std::string_view::npos; }

MetricUnit unit_of(std::string_view metric) { return family_of(metric).unit; }

std::string format_metric(std::string_view metric, double value) {
  switch (unit_of(metric)) {
    case MetricUnit::seconds:
      return format_seconds(Seconds(value));
    case MetricUnit::bytes:
      return format_bytes(whole_bytes(value));
    case MetricUnit::flag:
      return value > 0 ? "yes" : "no";
    case MetricUnit::count:
      break;
  }
  return format_count(std::llround(value));
}

std::string format_change(std::string_view metric, double before, double now) {
  if (unit_of(metric) == MetricUnit::flag) return now > before ? "fits now" : "fits no longer";
  const double difference = now - before;
  const char* sign = difference < 0 ? "-" : "+";
  std::string amount = sign + format_metric(metric, std::abs(difference));
  if (before == 0) return amount;
  return fmt::format("{} ({}{})", amount, sign, format_percent(std::abs(difference / before)));
}

std::string metric_label(std::string_view metric) {
  const Family& family = family_of(metric);
  const std::size_t dot = metric.find('.');
  if (dot == std::string_view::npos) return family.label;
  std::string part(metric.substr(dot + 1));
  if (metric_family(metric) == "by_category") std::replace(part.begin(), part.end(), '_', ' ');
  return fmt::format("{}, {}", family.label, part);
}

}  // namespace shardsim
