// Concatenations whose operands and result lie differently are brought to one sharding before the
// program is partitioned, by resharding what differs.
//
//   concatenate over dimension 1 of {"x"}, {} and {}, {"y"} to {"x"}, {"y"}; mesh x=2, y=4
//     all are made as {"x", "y"}, {}, and the result resharded to {"x"}, {"y"}
//
// Axes are given to dimensions one by one: always those that split the most elements, summed over
// the tensors; what overlaps with them elsewhere is dropped. In the end the concatenated dimension
// hands its axes to the others, where they fit, since it has to be whole; not so where it joins
// slices of tensors, whose factor rule makes it a permutation (a roll).
// What Shardy does before XLA partitions (openxla/shardy
// shardy/dialect/sdy/transforms/export/explicit_reshards_util.cc), as jax 0.10.2 shows it.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// `program` is what propagate() left.
void align_concatenations(stablehlo::Module& program);

}  // namespace shardsim::spmd
