#include "checks/limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/glob.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "checks/metric.hpp"
#include "plan/plan.hpp"
#include "reports/format/figures.hpp"

namespace shardsim {
namespace {

constexpr std::string_view forms =
    R"(expected for example "+2 %", "+10 % or +1 ms", "<= 72 GiB", "+1 %, <= 66" or "any")";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + separator.size());
  }
}

double plain_amount(std::string_view text, const Place& place) {
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  const bool whole = end != copy.c_str() && *end == '\0';
  if (!whole || !std::isfinite(number) || number < 0) {
    throw InputError(place, fmt::format("\"{}\" is not a number of calls or tensors", text));
  }
  return number;
}

// In the unit of the metric.
double amount(std::string_view text, const std::string& metric, const Place& place) {
  switch (unit_of(metric)) {
    case MetricUnit::seconds:
      return parse_seconds(text, place).count();
    case MetricUnit::bytes:
      return static_cast<double>(parse_bytes(text, place).count());
    case MetricUnit::count:
    case MetricUnit::flag:
      break;
  }
  return plain_amount(text, place);
}

Limit::Growth parse_growth(std::string_view text, const std::string& metric, const Place& place) {
  constexpr double hundred = 100;
  Limit::Growth growth;
  growth.text = std::string(text);
  for (std::string_view one : split(text, " or ")) {
    if (!one.starts_with('+')) {
      throw InputError(place, fmt::format("\"{}\" is no limit: {}", text, forms));
    }
    one = trimmed(one.substr(1));
    if (one.ends_with('%')) {
      const double percent = plain_amount(trimmed(one.substr(0, one.size() - 1)), place);
      growth.relative = std::max(growth.relative, percent / hundred);
    } else {
      growth.absolute = std::max(growth.absolute, amount(one, metric, place));
    }
  }
  return growth;
}

StatedLimit parse_limit(std::string_view text, const std::string& metric, const Place& place) {
  if (trimmed(text) == "any") return {.limit = {}, .any = true};
  StatedLimit stated;
  for (const std::string_view part : split(text, ",")) {
    if (part.starts_with("<=")) {
      if (stated.limit.budget) throw InputError(place, "two budgets for one metric");
      stated.limit.budget = {amount(trimmed(part.substr(2)), metric, place), std::string(part)};
    } else {
      if (stated.limit.growth) throw InputError(place, "two growths: join them with \" or \"");
      stated.limit.growth = parse_growth(part, metric, place);
    }
  }
  return stated;
}

StatedLimit read_fits(const JsonReader& json) {
  if (json.is_string() && json.string() == "any") return {.limit = {}, .any = true};
  if (!json.is_bool()) json.fail("expected true, false or \"any\"");
  if (!json.boolean()) return {.limit = {}, .any = true};
  return {.limit = {.growth = {}, .budget = Limit::Budget{0, "must fit"}}};
}

std::vector<std::string> categories() {
  std::vector<std::string> names;
  for (int i = 0; i < buffer_categories; ++i) {
    names.push_back(category_key(static_cast<BufferCategory>(i)));
  }
  return names;
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
        CollectiveKind::all_to_all, CollectiveKind::collective_permute,
        CollectiveKind::broadcast}) {
    names.emplace_back(name_of(kind));
  }
  names.emplace_back(name_of(TaskKind::to_host));
  names.emplace_back(name_of(TaskKind::from_host));
  return names;
}

void require_part(const std::string& family, const std::string& part, const JsonReader& json) {
  const bool is_memory = family == "by_category";
  const std::vector<std::string> known = is_memory ? categories() : kinds();
  const std::string name = is_memory ? part : std::string(kind_of_part(part));
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string what = is_memory ? "category of memory" : "kind of collective";
  const std::string suggestion = closest(name, known);
  if (!suggestion.empty()) json.fail(fmt::format("no {} \"{}\"", what, name), suggestion);
  json.fail(fmt::format("no {} \"{}\"; there are {}", what, name, fmt::join(known, ", ")));
}

// "calls.all-gather over a,b" of "calls.all-gather over b, a": axes are a set, and a limit may name
// them in another order than the collective has them.
std::string with_sorted_axes(const std::string& metric) {
  if (!is_over_axes(metric)) return metric;
  std::vector<std::string_view> axes = split(axes_of_part(metric), ",");
  std::sort(axes.begin(), axes.end());
  return traffic_part(kind_of_part(metric), fmt::format("{}", fmt::join(axes, ",")));
}

void read_family(const std::string& family, const JsonReader& json, LimitRule& rule) {
  if (family == "fits") {
    rule.metrics[family] = read_fits(json);
  } else if (json.is_object() && has_parts(family)) {
    for (const auto& [part, value] : json.members()) {
      require_part(family, part, value);
      const std::string metric = with_sorted_axes(fmt::format("{}.{}", family, part));
      StatedLimit stated = parse_limit(value.string(), metric, value.place());
      stated.place = value.place();
      if (!rule.metrics.emplace(metric, std::move(stated)).second) {
        value.fail("is for axes that another limit is for, in another order");
      }
    }
  } else {
    if (!json.is_string()) json.fail(forms);
    rule.metrics[family] = parse_limit(json.string(), family, json.place());
  }
}

// A part over an axis that no experiment has, of those that it is for.
struct UnknownAxis {
  std::string metric;
  std::string axis;
  Place place;
  std::vector<std::string> known;
};

std::vector<UnknownAxis> unknown_axes(const LimitRule& rule, const AxesByExperiment& experiments) {
  std::set<std::string> known;
  for (const auto& [name, axes] : experiments) {
    if (!rule.matches(name)) continue;
    if (axes.empty()) return {};
    known.insert(axes.begin(), axes.end());
  }
  if (known.empty()) return {};
  std::vector<UnknownAxis> unknown;
  for (const auto& [metric, stated] : rule.metrics) {
    if (!is_over_axes(metric)) continue;
    for (const std::string_view part : split(axes_of_part(metric), ",")) {
      const std::string axis(part.substr(0, part.find(":(")));
      if (known.contains(axis)) continue;
      unknown.push_back({metric, axis, stated.place, {known.begin(), known.end()}});
      break;
    }
  }
  return unknown;
}

// The sum over all axes of a kind: no limit unless one names it.
bool is_sum(std::string_view metric) {
  const std::string_view family = metric_family(metric);
  if (family != "calls" && family != "wire_bytes") return false;
  return metric != family && !is_over_axes(metric);
}

Limit standard_limit(const std::string& metric) {
  struct Row {
    const char* family;
    const char* text;
  };
  constexpr std::array rows{Row{"step_time_s", "+2 %"},
                            Row{"exposed_communication_s", "+10 % or +1 ms"},
                            Row{"peak_bytes", "+1 %"},
                            Row{"wire_bytes", "+1 %"},
                            Row{"calls", "+0"},
                            Row{"parameter_bytes", "+1 %"},
                            Row{"newly_replicated_parameters", "+0"},
                            Row{"newly_unmatched_rules", "+0"}};
  if (metric == "fits") return {.growth = Limit::Growth{0, 0, "fitted before"}, .budget = {}};
  if (is_sum(metric)) return {};
  for (const Row& row : rows) {
    if (metric_family(metric) == row.family) {
      return {.growth = parse_growth(row.text, metric, {}), .budget = {}};
    }
  }
  return {};
}

}  // namespace

double Limit::allowed_growth(double baseline) const {
  return std::max(growth->relative * baseline, growth->absolute);
}

bool LimitRule::matches(std::string_view experiment) const {
  Glob glob;
  for (std::string_view rest = experiments;;) {
    const std::size_t star = rest.find('*');
    glob.pieces.emplace_back(rest.substr(0, star));
    if (star == std::string_view::npos) break;
    rest.remove_prefix(star + 1);
  }
  return glob.matches(experiment);
}

Limit Limits::of(std::string_view experiment, const std::string& metric) const {
  Limit limit = standard_limit(metric);
  for (const LimitRule& rule : rules_) {
    if (!rule.matches(experiment)) continue;
    auto stated = rule.metrics.find(with_sorted_axes(metric));
    if (stated == rule.metrics.end() && !is_sum(metric)) {
      stated = rule.metrics.find(std::string(metric_family(metric)));
    }
    if (stated == rule.metrics.end()) continue;
    if (stated->second.any) limit = {};
    if (stated->second.limit.growth) limit.growth = stated->second.limit.growth;
    if (stated->second.limit.budget) limit.budget = stated->second.limit.budget;
  }
  return limit;
}

std::vector<std::string> Limits::named_parts(std::string_view experiment) const {
  std::set<std::string> names;
  for (const LimitRule& rule : rules_) {
    if (!rule.matches(experiment)) continue;
    for (const auto& [metric, stated] : rule.metrics) {
      if (metric != metric_family(metric)) names.insert(metric);
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> Limits::unmatched(const std::vector<std::string>& experiments) const {
  std::vector<std::string> keys;
  for (const LimitRule& rule : rules_) {
    const bool any = std::any_of(experiments.begin(), experiments.end(),
                                 [&](const std::string& name) { return rule.matches(name); });
    if (!any) keys.push_back(rule.experiments);
  }
  return keys;
}

void Limits::require_matches(const std::vector<std::string>& experiments) const {
  const std::vector<std::string> keys = unmatched(experiments);
  if (keys.empty()) return;
  const auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const LimitRule& one) {
    return one.experiments == keys.front();
  });
  throw InputError(rule->place, fmt::format("no experiment is called \"{}\"", keys.front()),
                   closest(keys.front(), experiments));
}

std::vector<std::string> Limits::without_axes(const AxesByExperiment& experiments) const {
  std::vector<std::string> parts;
  for (const LimitRule& rule : rules_) {
    for (const UnknownAxis& one : unknown_axes(rule, experiments)) {
      parts.push_back(metric_label(one.metric));
    }
  }
  return parts;
}

void Limits::require_axes(const AxesByExperiment& experiments) const {
  for (const LimitRule& rule : rules_) {
    for (const UnknownAxis& one : unknown_axes(rule, experiments)) {
      throw InputError(
          one.place, fmt::format("no axis \"{}\" in the experiments that this holds for", one.axis),
          closest(one.axis, one.known));
    }
  }
}

Limits read_limits(const JsonReader& json) {
  std::vector<LimitRule> rules;
  for (const auto& [experiments, metrics] : json.members()) {
    metrics.only_keys(metric_families());
    LimitRule rule{.experiments = experiments, .place = metrics.place(), .metrics = {}};
    for (const auto& [family, value] : metrics.members()) read_family(family, value, rule);
    rules.push_back(std::move(rule));
  }
  return Limits(std::move(rules));
}

}  // namespace shardsim
