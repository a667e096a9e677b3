// A partitioned program as a plan: what one device does, in the order of the program.
//
//   %0 = stablehlo.all_gather %w      #0 all-gather   communication   after what makes %w
//   %1 = stablehlo.dot_general ...    #1 matmul       compute, after #0
//
// - Where the target is known, kernels are what XLA would fuse (memory/kernel_work.hpp); an op that
//   is computed inside others is no task, who reads it waits for its operands. Otherwise one kernel
//   per op; ops that only rename data (reshape, constants, offsets by device) are none.
// - A kernel with a dot counts the dot's operations alone and runs at the rate of its operands'
//   type: what is fused into it is taken to run beside it, on other units.
// - The order is that of the program.
// - Collectives run on a stream of their own, users wait for them.
// - Loops are unrolled, their iterations numbered as layers (inner loops as microbatches). A loop
//   of unknown trip count runs once, all branches of a conditional run, and notes say so.
// - Buffers are the arguments, those results that take no argument's place, and, where the target
//   is known, what lies between when most of it is alive (memory/device_memory.hpp). XLA holds all
//   three for the whole step, what lies between as one heap; its buffers are there from the task on
//   that makes them first, so that the plan's peak is where the program needs most.
// - An argument is called as the result that takes its place, where jax names it, and is held to be
//   what the name says (plan/argument_use.hpp).
#pragma once

#include <optional>

#include "plan/plan.hpp"
#include "spmd/memory/device_memory.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// `local` is what partition() made; `capacity` is what a device has for it. Throws InputError: more
// than 2^22 tasks when loops are unrolled; with a target, as device_memory().
[[nodiscard]] Plan plan_of(const stablehlo::Module& local,
                           std::optional<MemoryTarget> target = std::nullopt,
                           std::optional<Bytes> capacity = std::nullopt);

}  // namespace shardsim::spmd
