// Which experiments a check is about: those that are given, or those that the baseline names.
#pragma once

#include <string>
#include <vector>

#include "checks/baseline.hpp"
#include "command.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {

struct CheckSource {
  std::string key;  // in the baseline
  Experiment experiment;
  Recorded origin;    // file or folder, name and options, as a baseline writes them
  std::string shown;  // the file, as the user would name it
};

struct CheckSources {
  std::vector<CheckSource> sources;
  std::vector<std::string> gone;  // dumps of the baseline that are no longer there
};

// Of files, folders of dumps and flags on the command line; `operands` are those behind BASELINE.
// Experiments that the baseline knows have its names, others a name that it does not have.
[[nodiscard]] CheckSources given_sources(const Given& given, const Words& operands,
                                         const Baseline& baseline);
// All that the baseline names, with the flags of the command line laid over those that it records.
[[nodiscard]] CheckSources recorded_sources(const Given& given, const Baseline& baseline);

}  // namespace shardsim
