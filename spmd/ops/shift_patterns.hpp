// Ops that together shift a tensor along a split dimension, made one: each of them alone would move
// the whole tensor, the shift moves edges between neighbours.
//
//   concatenate(slice x [n-k:n], slice x [0:n-k])      ->  spmd.rotate x {dim, amount = k}
//   concatenate(slice x [a:..], x, slice x [..:b])     ->  pad, two rotates, selects
//   slice(pad x)                                       ->  pad with less, or negative, padding
//
// All must lie alike, and nobody else may read the slices or the pad. Source: openxla/xla
// xla/service/spmd/spmd_partitioner.cc (PreprocessHlos).
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// `program` is what propagate() left.
void merge_shifts(stablehlo::Module& program);

}  // namespace shardsim::spmd
