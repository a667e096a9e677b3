// Where a GPU program needs an array in another order of dimensions than it lies in memory, so that
// XLA copies the whole of it.
//
// Inside a kernel any order can be written. What costs is a stack of layers that a loop slices: its
// slices are wanted in one order, it was written in another, and the copy of all layers is made
// once outside of the loop. Three cases:
//
//   gathered   an all_gather wants the gathered dimension to be the major one. A stack of weights
//              [32, 4096, 1792] gathered along its last dimension is transposed before the loop;
//              one gathered along 4096 is not.
//   dotted     a dot with batch dimensions wants (batch, free, contracted). Of a KV cache
//              [b, t, kv, e] per layer that is so for keys (contracted: e) if kv is 1, for values
//              (contracted: t) never. What is stacked of such slices lies in their order, too.
//   stacked    what a loop stacks for a later one, computed from a dot whose result is transposed
//              before it is stored: written in the dot's order, copied into its own order between
//              the loops.
//
// Inferred from compiled programs of XLA's GPU compiler (jax 0.10.2, H100 and A100): "gathered"
// from `wrapped_transpose` of stacked weights in llama3-8b fsdp and qwen3-1.7b fsdp+tp; "dotted"
// from decode steps, where one cache is copied with 1 KV head per device and both with 2; "stacked"
// from llama3-8b with dots_saveable and without rematerialization, where the scores of all layers
// exist twice.
#pragma once

#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

struct LayoutCopies {
  // By ValueId of a dynamic slice: the stack has to be copied for it.
  std::vector<bool> turns_stack;
  // By ValueId: read in another order of dimensions than it is computed in.
  std::vector<bool> turned;
  // By ValueId of an argument of a loop's body: kept in another order than it begins with.
  std::vector<bool> reordered_state;
  // By ValueId of a loop's result: stacked in a foreign order.
  std::vector<bool> foreign_result;
};

[[nodiscard]] LayoutCopies gpu_layout_copies(const stablehlo::Module& module,
                                             const stablehlo::Function& main);

}  // namespace shardsim::spmd
