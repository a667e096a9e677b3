// Why the collectives of a partitioned program are there, in words for people.
//
// The partitioner leaves with each collective the op of the source that asks for it (spmd.origin)
// and the value of the source whose elements move (spmd.moved; none for sums). Of these and of the
// shardings of the source this makes
//   spmd.reason   "dot_general, line 4, needs argument 3 [{x}, {y}, {}] whole over y, which splits
//                 argument 1 [{x}, {y}] as well"
//   spmd.remedy   "annotate argument 3 as [{x}, {}, {}]: a device holds 2.0 MiB of it instead of
//                 512.0 KiB"
//   spmd.change   the annotation that the remedy (the last it names) would change
// A value that is cut, cast, reshaped or carried unchanged through a loop from an argument is told
// by that argument too, since its annotation is what a user can change. Where the words would have
// to guess there is no remedy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// `program` is what `local` was partitioned from; ids in `local` are of its first function.
void write_reasons(stablehlo::Module& local, const stablehlo::Module& program);

// What a remedy (the last one it names) proposes to write: the sharding of an argument or a result
// of the program (by number), or of the first result of ops of the source (by line).
struct Change {
  enum class Of { argument, result, line };
  std::string remedy;
  std::string otherwise;  // the remedy without it; empty: no other is known
  Of of = Of::argument;
  std::int64_t number = 0;
  stablehlo::AxisSharding sharding;
};
// Those of all collectives, each once, in the order of the text.
[[nodiscard]] std::vector<Change> proposed_changes(const stablehlo::Module& local);
// `prepared`: the source before propagate(). False where nothing is found to be changed.
bool apply(const Change& change, stablehlo::Module& prepared);

}  // namespace shardsim::spmd
