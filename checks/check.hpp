// What became of a baseline's experiments: which metric is worse than its limit allows, and why.
//
//   CheckedExperiment one = check_experiment("fsdp", &recorded, measured, limits, remedies);
//   one.violations[0]    calls.all-gather over fsdp: 58 -> 86, limit +0,
//                        "the experiment changed: strategy.reshard_after_forward false -> true",
//                        "all-gather over fsdp, 96.0 MiB bf16, 28 times, is new: model.layers.{},
//                         backward: parameters of ... are stored over fsdp ...; to avoid it: ..."
//
// A metric is worse when it is more than the baseline and the growth its limit allows, or than its
// budget (limits.hpp); an improvement when it is less than the baseline by more than the same. What
// is in between is neither.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checks/baseline.hpp"
#include "checks/measure.hpp"

namespace shardsim {

struct CheckFinding {
  std::string metric;
  std::optional<double> baseline;  // nothing: a budget, of what no baseline holds
  double now = 0;
  std::string limit;                // "+2 %", "<= 72 GiB"
  std::vector<std::string> causes;  // sentences, what changed first; of improvements the first only
};

struct CheckedExperiment {
  std::string name;
  std::string file;     // as the user would name it, for annotations; may be empty
  bool is_new = false;  // the baseline does not have it
  std::vector<CheckFinding> violations;
  std::vector<CheckFinding> improvements;
  Recorded now;
  std::optional<Recorded> before;
};

struct CheckReport {
  std::string baseline;  // path
  std::vector<CheckedExperiment> experiments;
  std::vector<std::string> gone;      // dumps that the baseline has and the folder has not
  std::vector<std::string> recorded;  // written into the baseline, as they are now
  std::vector<std::string>
      idle_limits;  // budgets of experiments that are not checked, or of axes that none has
  bool warn_only = false;

  [[nodiscard]] std::size_t violations() const;
  [[nodiscard]] std::size_t improvements() const;
};

// Collectives with remedies, made when there is something to explain.
using Remedies = std::function<Explanation()>;

// `before`: null where the baseline does not have it: budgets alone.
[[nodiscard]] CheckedExperiment check_experiment(const std::string& name, const Recorded* before,
                                                 const Measured& measured, const Limits& limits,
                                                 const Remedies& remedies);

// By metric, of all that can be compared. `parts`: sums over axes to add (Limits::named_parts).
[[nodiscard]] std::map<std::string, double> metrics_of(const Recorded& recorded,
                                                       const std::vector<std::string>& parts);

}  // namespace shardsim
