// What would make a step fit that does not: changes of the experiment, each of them predicted.
//
//   for (const Suggestion& s : suggest_to_fit(prediction)) ...
//   "workload.rematerialization" = "full"    58.4 GiB, 1.310 s, fits
//
// Tried is a short list, one after the other, of what changes neither the model nor its numbers:
//
//   strategy.sequence_parallel   true, of tensor parallelism
//   strategy.zero_stage          1, 2 where parameters are whole on every device
//   strategy.name                fsdp for dp, fsdp+tp for tp, where one axis splits the batch
//   strategy.reshard_after_forward  true
//   workload.microbatches        twice, four times as many; one sequence a device in each
//   workload.rematerialization   selective, full
//
// Of a step of inference, whose cache takes what parameters leave: as many sequences as there is
// place for, as long ones, or keys and values in 8 bits, in place of the last two.
//
// Where none of them fits alone, the one with the smallest peak is kept and the others are tried on
// top of it or, of the same field, in its place: for `most_rounds` in all, or until one fits or
// nothing makes the peak smaller. That is no search: other meshes, more devices and combinations
// that begin otherwise are not tried.
#pragma once

#include <vector>

#include "experiments/experiment.hpp"

namespace shardsim {

inline constexpr int most_rounds = 4;
inline constexpr std::size_t most_suggestions = 3;

// Those that fit, the shortest step first, at most `most_suggestions`; where none does, the one
// that comes nearest, if it needs less than the experiment. Empty for a step that fits, and for
// programs, whose text says all. Costs a prediction for each change of each round, 36 at most, a
// few where the first changes fit: a round has at most 9, of tp 1 sequence_parallel, 2 zero_stage,
// 1 name, 3 microbatches and 2 rematerialization.
[[nodiscard]] std::vector<Suggestion> suggest_to_fit(const Prediction& prediction);

}  // namespace shardsim
