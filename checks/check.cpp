#include "checks/check.hpp"

#include <algorithm>
#include <set>

#include "checks/causes.hpp"
#include "checks/metric.hpp"

namespace shardsim {
namespace {

// Less is better, of all metrics.
double badness(const std::string& metric, double value) {
  return metric == "fits" ? 1 - value : value;
}

void append(std::vector<std::string>& causes, const std::vector<std::string>& more) {
  causes.insert(causes.end(), more.begin(), more.end());
}

class Checker {
 public:
  Checker(CheckedExperiment& checked, const Measured& measured, const Limits& limits,
          const Remedies& remedies)
      : checked_(checked), measured_(measured), limits_(limits), remedies_(remedies) {}

  void run() {
    if (checked_.before && checked_.before->values.contains("step_time_s") &&
        !checked_.now.values.contains("step_time_s")) {
      throw InputError({checked_.name, ""},
                       "has no machine, and its baseline has a step time: name one, or --record");
    }
    const std::vector<std::string> parts = limits_.named_parts(checked_.name);
    const auto now = metrics_of(checked_.now, parts);
    std::map<std::string, double> before;
    if (checked_.before) before = metrics_of(*checked_.before, parts);
    for (const std::string& metric : all_metrics(before, now)) {
      const auto was = before.find(metric);
      const auto is = now.find(metric);
      // What one of the two does not have at all, such as a step without a machine.
      if (is == now.end() && metric == metric_family(metric)) continue;
      std::optional<double> baseline;
      if (was != before.end()) baseline = was->second;
      if (!baseline && checked_.before && metric != metric_family(metric)) baseline = 0;
      compare(metric, baseline, is == now.end() ? 0 : is->second);
    }
    if (checked_.before) compare_parameters();
  }

 private:
  // In the order of the families, parts by name.
  static std::vector<std::string> all_metrics(const std::map<std::string, double>& before,
                                              const std::map<std::string, double>& now) {
    std::set<std::string> names;
    for (const auto& [name, value] : before) names.insert(name);
    for (const auto& [name, value] : now) names.insert(name);
    std::vector<std::string> ordered;
    for (const std::string& family : metric_families()) {
      for (const std::string& name : names) {
        if (metric_family(name) == family) ordered.push_back(name);
      }
    }
    return ordered;
  }

  void compare(const std::string& metric, std::optional<double> baseline, double now) {
    const Limit limit = limits_.of(checked_.name, metric);
    const double is = badness(metric, now);
    if (limit.growth && baseline) {
      const double was = badness(metric, *baseline);
      const double allowed = limit.allowed_growth(was);
      if (is > was + allowed) violate(metric, baseline, now, limit.growth->text);
      if (is < was - allowed) improve(metric, *baseline, now, limit.growth->text);
    }
    if (limit.budget && is > limit.budget->most) violate(metric, baseline, now, limit.budget->text);
  }

  void compare_parameters() {
    const NewlyReplicated replicated =
        newly_replicated(*checked_.before, checked_.now, measured_.specs);
    if (replicated.parameters > 0) {
      compare("newly_replicated_parameters", 0, static_cast<double>(replicated.parameters));
    }
    const std::vector<std::string> unmatched = newly_unmatched(*checked_.before, checked_.now);
    if (!unmatched.empty()) {
      compare("newly_unmatched_rules", 0, static_cast<double>(unmatched.size()));
    }
  }

  void violate(const std::string& metric, std::optional<double> baseline, double now,
               const std::string& limit) {
    CheckFinding finding{metric, baseline, now, limit, {}};
    if (checked_.before) finding.causes.push_back(changed_inputs(*checked_.before, checked_.now));
    append(finding.causes, causes_of(metric, baseline, now));
    checked_.violations.push_back(std::move(finding));
  }

  void improve(const std::string& metric, double baseline, double now, const std::string& limit) {
    checked_.improvements.push_back(
        {metric, baseline, now, limit, {changed_inputs(*checked_.before, checked_.now)}});
  }

  std::vector<std::string> causes_of(const std::string& metric, std::optional<double> baseline,
                                     double now) {
    const std::string_view family = metric_family(metric);
    // A budget that is exceeded, though nothing grew: what there is, not what is new.
    const bool grew = baseline && badness(metric, now) > badness(metric, *baseline);
    const Recorded* before = grew && checked_.before ? &*checked_.before : nullptr;
    std::vector<std::string> causes;
    const bool of_specs = family.starts_with("newly_");  // which tell the same themselves
    if (before != nullptr && !of_specs) append(causes, changed_shardings(*before, checked_.now));
    if (family == "calls" || family == "wire_bytes") {
      const std::string part = metric == family ? "" : metric.substr(family.size() + 1);
      append(causes, grown_collectives(before, explanation(), part));
    } else if (family == "step_time_s" || family == "exposed_communication_s") {
      if (before != nullptr) causes.push_back(grown_times(*before, checked_.now));
      append(causes, grown_collectives(before, explanation(), ""));
    } else if (family == "newly_replicated_parameters") {
      append(causes, newly_replicated(*checked_.before, checked_.now, measured_.specs).texts);
    } else if (family == "newly_unmatched_rules") {
      append(causes, newly_unmatched(*checked_.before, checked_.now));
    } else if (unit_of(metric) != MetricUnit::count) {
      append(causes, grown_memory(before, checked_.now));
    }
    std::erase_if(causes, [](const std::string& cause) { return cause.empty(); });
    return causes;
  }

  const Explanation& explanation() {
    if (!remedies_) return measured_.explanation;
    if (!tried_) tried_ = remedies_();
    return *tried_;
  }

  CheckedExperiment& checked_;
  const Measured& measured_;
  const Limits& limits_;
  const Remedies& remedies_;
  std::optional<Explanation> tried_;
};

}  // namespace

std::size_t CheckReport::violations() const {
  std::size_t count = 0;
  for (const CheckedExperiment& one : experiments) count += one.violations.size();
  return count;
}

std::size_t CheckReport::improvements() const {
  std::size_t count = 0;
  for (const CheckedExperiment& one : experiments) count += one.improvements.size();
  return count;
}

std::map<std::string, double> metrics_of(const Recorded& recorded,
                                         const std::vector<std::string>& parts) {
  std::map<std::string, double> metrics;
  const std::vector<std::string>& families = metric_families();
  for (const auto& [name, value] : recorded.values) {
    // Those that are there to explain others, such as the time of computation, are no metrics.
    if (std::find(families.begin(), families.end(), name) != families.end()) metrics[name] = value;
  }
  for (const auto& [category, bytes] : recorded.by_category) {
    metrics["by_category." + category] = static_cast<double>(bytes);
  }
  // A tree has no step: no traffic is not the same as none of it.
  const bool has_step = !recorded.values.contains("parameter_bytes");
  if (has_step) metrics["wire_bytes"] = 0;
  const auto add = [&](const std::string& part, const Traffic& traffic) {
    metrics["calls." + part] += static_cast<double>(traffic.calls);
    metrics["wire_bytes." + part] += static_cast<double>(traffic.wire.count());
  };
  for (const auto& [row, traffic] : recorded.communication) {
    add(row, traffic);
    metrics["wire_bytes"] += static_cast<double>(traffic.wire.count());
  }
  std::set<std::string> kinds;
  for (const std::string& part : parts) {
    const std::string_view family = metric_family(part);
    const bool counts = family == "calls" || family == "wire_bytes";
    if (counts && !is_over_axes(part)) {
      kinds.insert(part.substr(family.size() + 1));
    }
  }
  for (const std::string& kind : kinds) {
    add(kind, {});
    for (const auto& [row, traffic] : recorded.communication) {
      if (is_over_axes(row) && kind_of_part(row) == kind) add(kind, traffic);
    }
  }
  return metrics;
}

CheckedExperiment check_experiment(const std::string& name, const Recorded* before,
                                   const Measured& measured, const Limits& limits,
                                   const Remedies& remedies) {
  CheckedExperiment checked;
  checked.name = name;
  checked.is_new = before == nullptr;
  checked.now = measured.recorded;
  if (before != nullptr) checked.before = *before;
  Checker(checked, measured, limits, remedies).run();
  return checked;
}

}  // namespace shardsim
