// What a metric may become before `check` says no.
//
//   "limits": {
//     "*":      {"step_time_s": "+3 %", "exposed_communication_s": "+10 % or +1 ms"},
//     "moe-*":  {"peak_bytes": "+1 %, <= 72 GiB", "calls": {"all-gather": "<= 66"}, "fits": true},
//     "legacy": {"step_time_s": "any"}
//   }
//
// Keys are experiments' names, * stands for any text. All that match hold; what a later one says of
// a metric replaces what an earlier one said.
//
// "+3 %" is how much more than the baseline is allowed; of several with "or" the largest.
// "<= 72 GiB" is a budget, which needs no baseline. A metric has at most one of each, and one does
// not replace the other; "any" takes both away. "fits": true asks for a step that fits, baseline or
// not.
//
// "calls", "wire_bytes" and "by_category" hold for each of their parts ("wire_bytes" for the sum as
// well), or are an object that names parts: a kind, "all-gather", or a kind over axes, "all-gather
// over fsdp"; a category of memory. The order of several axes does not matter.
//
// Where nothing is said:
//   step_time_s                  +2 %
//   exposed_communication_s      +10 % or +1 ms
//   peak_bytes                   +1 %
//   wire_bytes                   +1 %, in all and of every kind over every axes
//   calls                        +0, of every kind over every axes
//   fits                         stays as it is
//   parameter_bytes              +1 %
//   newly_replicated_parameters, newly_unmatched_rules   +0
//   by_category, replicated_parameters                   any
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"

namespace shardsim {

struct Limit {
  struct Growth {
    double relative = 0;  // of the baseline
    double absolute = 0;  // in the metric's unit; the larger of both is allowed
    std::string text;
  };
  struct Budget {
    double most = 0;
    std::string text;
  };
  std::optional<Growth> growth;
  std::optional<Budget> budget;

  [[nodiscard]] double allowed_growth(double baseline) const;  // requires growth
};

// What the limits of one key say of one metric.
struct StatedLimit {
  Limit limit;
  bool any = false;  // takes away what was said before
  Place place{};
};

struct LimitRule {
  std::string experiments;  // "moe-*"
  Place place;
  // By metric, its axes sorted, or by a family for all of its parts.
  std::map<std::string, StatedLimit> metrics;

  [[nodiscard]] bool matches(std::string_view experiment) const;
};

// Axes over which an experiment may communicate, by its name; empty: they are not known.
using AxesByExperiment = std::map<std::string, std::set<std::string>>;

class Limits {
 public:
  Limits() = default;
  explicit Limits(std::vector<LimitRule> rules) : rules_(std::move(rules)) {}

  [[nodiscard]] Limit of(std::string_view experiment, const std::string& metric) const;
  // Parts that are named for the experiment: "calls.all-gather".
  [[nodiscard]] std::vector<std::string> named_parts(std::string_view experiment) const;
  // Keys that match none of these names.
  [[nodiscard]] std::vector<std::string> unmatched(
      const std::vector<std::string>& experiments) const;
  // Throws InputError for the first of them.
  void require_matches(const std::vector<std::string>& experiments) const;
  // Parts over an axis that none of the experiments has for which they are: "calls, all-gather over
  // x". They cannot be violated.
  [[nodiscard]] std::vector<std::string> without_axes(const AxesByExperiment& experiments) const;
  // Throws InputError for the first of them.
  void require_axes(const AxesByExperiment& experiments) const;

 private:
  std::vector<LimitRule> rules_;
};

// The object behind "limits". Throws InputError.
[[nodiscard]] Limits read_limits(const JsonReader& json);

}  // namespace shardsim
