// The passes of prepare(), in their order. A program goes through XLA's HLO and back before its
// shardings are propagated, and comes out a little different; since the sharding of every value is
// to be known, these differences are made here.
//
// import_tiles: mhlo.sharding becomes sdy.sharding over a mesh that explains all tiles; @Sharding
//   becomes a constraint, and a call between @SPMDFullToShardShape and @SPMDShardToFullShape a
//   manual computation.
// simplify_moves: a slice of a concatenation reads the pieces that it needs only, pieces without
//   elements are left out; a reversal of dimensions of size 1 is nothing, a padded tensor without
//   elements is padding.
// canonicalize, of each function by itself: what MLIR folds. x + 0 and x * 1 are x, constants are
//   right operands of commutative ops and may be large, broadcasts that add dimensions of size 1
//   are reshapes, ...
// inline_calls: what a function calls stands in its place; equal functions that are called twice
//   stand there twice.
// narrow_loops: what no round of a loop changes is no operand of it.
// narrow_manual_computations: nor is what a manual computation does not read.
// sink_constants: a constant that loops and branches read from outside stands in each of them.
// open_loop_inputs: what a loop reads from outside and the user gave a sharding is read through a
//   constraint that is open in all dimensions, so that the loop is not held to it.
// expand: what HLO has no op for. A large constant is a broadcast scalar, an iota has one dimension
//   and is broadcast, a broadcast that stretches a dimension of size 1 drops it before.
// order_from_results, of each function before it is inlined: only what results need, operands
//   before their readers, first operand first.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// Throws InputError: shardings that no mesh explains.
void import_tiles(stablehlo::Module& program);
[[nodiscard]] stablehlo::Function simplify_moves(const stablehlo::Module& module,
                                                 const stablehlo::Function& function);
[[nodiscard]] stablehlo::Function canonicalize(const stablehlo::Module& module,
                                               const stablehlo::Function& function);
// Throws InputError: functions that are not there or call themselves.
[[nodiscard]] stablehlo::Function inline_calls(const stablehlo::Module& module,
                                               const stablehlo::Function& function);
// True when a loop got narrower.
bool narrow_loops(stablehlo::Function& function);
// True when there are any.
bool narrow_manual_computations(stablehlo::Function& function);
void sink_constants(stablehlo::Function& function);
void open_loop_inputs(const stablehlo::Module& module, stablehlo::Function& function);
[[nodiscard]] stablehlo::Function expand(const stablehlo::Function& function);
void order_from_results(stablehlo::Function& function);
// Only what results need, in the order as it is.
void drop_unneeded(stablehlo::Function& function);

}  // namespace shardsim::spmd
