// What happens to a function before axes travel, in this order.
//
// split_constants: every op that reads a constant gets one of its own, with the ops that only
//   compute with constants, and so does who reads a broadcast scalar. Otherwise a constant that two
//   ops share would carry the sharding of one to the other.
// apply_constraints: what with_sharding_constraint is told about its result holds for its operand
//   as well, unless that has a sharding, or another constraint. A value that flows around a loop
//   keeps its freedom: instead all who read it read the constraint.
// merge_constants: the inverse of the first, afterwards: constants and broadcast scalars in one
//   region with equal shardings are one again.
//
// Source: openxla/shardy transforms/import, transforms/export constant_or_scalar_merger.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

void split_constants(stablehlo::Function& function);
void apply_constraints(const stablehlo::Module& module, stablehlo::Function& function);
void merge_constants(stablehlo::Function& function);

}  // namespace shardsim::spmd
