// EXPERIMENT files and the flags that change or replace them: common to run, compare, plan, specs.
#pragma once

#include "command.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {

void add_experiment_options(boost::program_options::options_description& options);
// All experiments that the operands and flags describe; with --name only those of that name. Throws
// UsageError when there is neither a file nor a flag, InputError for what is wrong inside.
[[nodiscard]] std::vector<Experiment> read_given_experiments(const Given& given);
// For verbs that take one. Throws InputError, listing the names, when there are several.
[[nodiscard]] Experiment read_given_experiment(const Given& given);

}  // namespace shardsim
