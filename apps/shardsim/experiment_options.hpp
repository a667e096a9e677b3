// EXPERIMENT files and the flags that change or replace them: common to run, compare, plan, specs.
//
// A flag that holds a list, or is repeated, makes variants, each combined with each, named by what
// differs:
//
//   --strategy dp,fsdp --batch 64,128      "dp, batch 64", "dp, batch 128", "fsdp, batch 64", ...
//   --mesh data=8 --mesh data=2,fsdp=4     a mesh has commas of its own: repeated
//   --machine 'ring(bandwidth=50GB/s,latency=1us),dgx-h100'      commas in brackets are no lists
#pragma once

#include "command.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {

void add_experiment_options(po::options_description& options);
// All experiments that the operands and flags describe; with --name only those of that name. Throws
// UsageError when there is neither a file nor a flag, InputError for what is wrong inside.
[[nodiscard]] std::vector<Experiment> read_given_experiments(const Given& given);
// For verbs that take one. Throws InputError, listing the names, when there are several.
[[nodiscard]] Experiment read_given_experiment(const Given& given);
// For verbs that know experiments by their names, which variants of flags have not. Throws
// UsageError, naming the first flag that has several values.
void require_single_values(const Given& given);

}  // namespace shardsim
