// What remains of a program after fusion: kernels that read and write buffers.
//
// Every value is one of
//   view     another name of what it views: reshape, transpose, optimization_barrier
//   fused    in no memory: computed where it is read, again for every reader. Reading it means
//            reading its sources, the buffers that it is computed from
//   buffer   written by a kernel
//
//   %1 = dot %a, %b       buffer 2             kernel {reads 0, 1; writes 2}
//   %2 = exp %1           fused, sources {2}
//   %3 = reduce %2        buffer 3             kernel {reads 2; writes 3}
//
// Loops have kernels of their own. State that no round changes is the array around the loop; state
// that changes has a buffer around the loop and stands for itself inside. Copies that XLA makes
// once, before the loop, are kernels around it:
//   TPU  casts to a narrower type of stacked weights (28 layers of f32 weights, cast where a layer
//        uses them, exist in bf16 as a whole: qwen3-1.7b on v5e)
//   GPU  stacks in another order (layout.hpp)
// A TPU also copies a donated argument at the start of the step when an all_gather at the end
// writes in its place (zero1 rows of qwen3 and ViT-L).
//
// A program that is too large is made tight:
//   TPU  nothing is written in two orders (gpt2 with dp on v5e); no argument is copied; what is
//        gathered at the end has a place of its own and is copied over the argument when all is
//        done (qwen3-1.7b with zero1 over 16 v5e)
//   GPU  what was gathered along another than the major dimension is turned into its place at once,
//        not when all is gathered (gpt3-175b with zero1_tp on A100)
#pragma once

#include <string>
#include <vector>

#include "spmd/memory/device_memory.hpp"

namespace shardsim::spmd {

using BufferId = int;
inline constexpr BufferId no_buffer = -1;
using Sources = std::vector<BufferId>;  // ascending, distinct

struct Buffer {
  Bytes bytes;
  stablehlo::TensorType type;
  stablehlo::OpId op = stablehlo::no_op;  // what made it
  stablehlo::RegionId region = 0;         // whose kernels write it
  bool is_token = false;                  // of an optimization_barrier: no bytes, only an order
  bool is_outside = false;  // an argument, a result or the state of the loop around: not counted
  bool is_kept = false;     // lives until the region ends
  // The argument or loop state whose place it takes when that is free.
  BufferId home = no_buffer;
  bool needs_own_place = false;  // lies in another order than its home would
  bool is_foreign = false;       // a stack in another order than it is sliced in
};

enum class KernelKind { other, dot, reduction, collective, loop };

// Which operand a kernel may write its result over, where that is needed no more.
enum class InPlace {
  never,
  any,     // elementwise
  initial  // a loop: over what the state begins as
};

struct Kernel {
  stablehlo::OpId op = stablehlo::no_op;
  KernelKind kind = KernelKind::other;
  Sources reads;
  std::vector<BufferId> writes;
  std::vector<BufferId> initial;  // of a loop, beside `writes`; no_buffer where there is none
  BufferId updates = no_buffer;   // changed in place
  InPlace in_place = InPlace::never;
  bool is_windowed = false;  // a dot in steps with the reduce_scatter that reads it
  // Of a dot that only a reduce_scatter reads, which runs right after it: the shard.
  BufferId reduced = no_buffer;
  std::vector<stablehlo::RegionId> inner;  // the body of a loop, the branches of a case
};

struct KernelRegion {
  std::vector<Kernel> kernels;  // in the order of the program
};

struct KernelGraph {
  std::vector<Buffer> buffers;
  std::vector<KernelRegion> regions;  // by RegionId; empty for reducers and conditions
};

// Throws InputError: element types without a size.
[[nodiscard]] KernelGraph kernels_of(const stablehlo::Module& module,
                                     const stablehlo::Function& main, MemoryTarget target,
                                     bool is_tight = false);

}  // namespace shardsim::spmd
