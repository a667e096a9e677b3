// An experiment predicted, and what a baseline would hold of it.
//
//   Meter meter;
//   Measured now = meter.measure(experiment);
//   now.recorded.values["step_time_s"]
//
// With a machine the step is simulated; without one collectives and parameters are what is known.
// Of a parameter tree parameters alone.
#pragma once

#include <map>
#include <set>
#include <string>

#include "checks/baseline.hpp"
#include "experiments/experiment.hpp"
#include "reports/step/explanation.hpp"
#include "strategies/specs/spec_table.hpp"

namespace shardsim {

struct Measured {
  Recorded recorded;        // `name` and `settings` set, the rest of where it is from is not
  Explanation explanation;  // of its collectives; empty for a tree
  SpecTable specs;          // parameters, with what assigned them; empty for a program
};

// Knows the digests of the machines that it has seen.
class Meter {
 public:
  [[nodiscard]] Measured measure(const Experiment& experiment);

 private:
  struct MachineDigests {
    std::string profile;
    std::string calibration;
  };
  const MachineDigests& digests_of(const Profile& profile, const std::string& name);
  std::map<std::string, MachineDigests> machines_;  // by path, or name, and what corrects it
};

// A tensor that every device holds whole.
[[nodiscard]] bool is_replicated(const ParameterSharding& row);
[[nodiscard]] RecordedCollective recorded_of(const ExplainedCollective& row);

// Over which it may communicate, with what stands for axes where there are none. Of what was
// recorded without its mesh: none, they are not known.
[[nodiscard]] std::set<std::string> axes_of(const Measured& measured);
[[nodiscard]] std::set<std::string> axes_of(const Recorded& recorded);

// Of an experiment whose program is one of a folder of dumps, which its path does not tell.
void forget_program_path(Recorded& recorded);

// The experiment's collectives with what plan --explain says of avoiding them, tried where it is a
// StableHLO program: as long as planning it a dozen times.
[[nodiscard]] Explanation explain_with_remedies(const Experiment& experiment);

}  // namespace shardsim
