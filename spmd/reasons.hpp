// Why the collectives of a partitioned program are there, in words for people.
//
// The partitioner leaves with each collective the op of the source that asks for it (spmd.origin)
// and the value of the source whose elements move (spmd.moved; none for sums). Of these and of the
// shardings of the source this makes
//   spmd.reason   "dot_general, line 4, needs argument 3 [{x}, {y}, {}] whole over y, which splits
//                 argument 1 [{x}, {y}] as well"
//   spmd.remedy   "annotate argument 3 as [{x}, {}, {}]: a device holds 2.0 MiB of it instead of
//                 512.0 KiB"
// A value that is cut, cast, reshaped or carried unchanged through a loop from an argument is told
// by that argument too, since its annotation is what a user can change. Where the words would have
// to guess there is no remedy.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// `program` is what `local` was partitioned from; ids in `local` are of its first function.
void write_reasons(stablehlo::Module& local, const stablehlo::Module& program);

}  // namespace shardsim::spmd
