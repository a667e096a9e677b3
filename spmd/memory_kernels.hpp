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
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spmd/memory.hpp"

namespace shardsim::spmd {

using BufferId = int;
inline constexpr BufferId no_buffer = -1;
using Sources = std::vector<BufferId>;  // ascending, distinct

struct Buffer {
  Bytes bytes;
  std::string type;
  stablehlo::OpId op = stablehlo::no_op;  // what made it
  stablehlo::RegionId region = 0;         // whose kernels write it
  bool is_token = false;                  // of an optimization_barrier: no bytes, only an order
  bool outside = false;       // an argument, or lives in the region around: no temporary here
  BufferId home = no_buffer;  // the argument or loop state whose place it takes when that is free
  bool needs_own_place = false;  // never takes its home's place
  std::optional<stablehlo::TensorType> type_id;
  bool kept = false;  // lives until the region ends
};

// Which operand a kernel may write its result over, where that is needed no more.
enum class InPlace {
  never,
  any,     // elementwise
  initial  // a loop: over what the state begins as
};

struct Kernel {
  stablehlo::OpId op = stablehlo::no_op;
  Sources reads;
  std::vector<BufferId> writes;
  std::vector<BufferId> initial;  // of a loop, beside `writes`; no_buffer where there is none
  BufferId updates = no_buffer;   // changed in place
  InPlace in_place = InPlace::never;
  Bytes inner;  // peak of the temporaries inside: the body of a loop
  stablehlo::RegionId body = -1;
};

// The kernels of one region in the order of the program.
struct KernelRegion {
  std::vector<Kernel> kernels;
};

struct KernelGraph {
  std::vector<Buffer> buffers;
  std::vector<KernelRegion> regions;  // by RegionId; empty for reducers, conditions and the like
};

[[nodiscard]] KernelGraph kernels_of(const stablehlo::Module& module,
                                     const stablehlo::Function& main, MemoryTarget target);

}  // namespace shardsim::spmd
