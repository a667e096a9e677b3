// What the kernels of a program compute and move once XLA has fused it (fusion.hpp): an op that is
// fused makes no kernel, its work is done by every kernel that reads it.
//
//   flops   of the op and of what is fused into it, once per kernel
//   bytes   what it writes, and each array in memory that it is computed from: as much of it as the
//           most that one path reads; behind a slice that is no more than the slice
//
// Example, on a TPU: x, w: f32[1024,1024], s: f32[8,1024,1024],
//   y = dot(exp(x) * slice(s), w)
// is one kernel: 2 * 1024^3 operations of the dot, 2^20 of multiply, 2^20 of exp; it reads x, 4 MiB
// of s, w, and writes y: 16 MiB. One kernel per op would move 68 MiB.
//
//   updates  (dynamic_update_slice, scatter) of an array in memory are taken to be made in place:
//            they move the update, not the array
//   loops    what a state begins with is written before the loop. TPU: except a stack whose slices
//            the loop writes from the first to the last (XLA allocates it: AllocateBuffer), and
//            constants that change in no round, which are computed inside
//   GPU      a value that n kernels read is written once where that moves less:
//            n * sources > sources + own bytes * (1 + n); beside memory's own rules, which ask for
//            what lies in memory longest (the residual stream of unrolled layers)
//
// Bytes are those of allocated_bytes(): a TPU's padding to tiles included.
//
// Beside the TPU compiler's own cost analysis (tests/spmd/fused_plan_golden_test.cpp, 21 training
// steps): bytes 0.96 of the compiler's in the median, 0.50 to 1.19; with one kernel per op 5.1.
// Not modelled: copies into other layouts and out of a loop's state (0.50: ViT with ZeRO-1; decode
// steps that stack their caches anew), outputs of several kernels written by one (AdamW's moments).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "spmd/memory/fusion.hpp"
#include "stablehlo/flops.hpp"

namespace shardsim::spmd {

struct KernelWork {
  stablehlo::Work work;
  Bytes bytes;
};

class FusedProgram {
 public:
  // A program that device_memory() takes. Keeps references to both. Throws InputError: as
  // fusion_of().
  FusedProgram(const stablehlo::Module& module, const stablehlo::Function& main,
               MemoryTarget target);

  // Not fused, and no collective, loop or branch.
  [[nodiscard]] bool is_kernel(stablehlo::OpId id) const;
  // Of a kernel. Linear in the ops that it computes, which are few where programs are layers; a
  // chain of n ops with a reader each takes n^2, as in fusion_of().
  [[nodiscard]] KernelWork work_of(stablehlo::OpId id);

 private:
  // How many of the elements of a value are needed.
  using Need = std::pair<stablehlo::ValueId, std::int64_t>;

  void find_loop_states();
  void keep_what_is_dear(stablehlo::RegionId region);
  [[nodiscard]] bool is_overwritten(const stablehlo::Op& loop, std::size_t i) const;
  void need_operands(stablehlo::OpId id);
  void need(stablehlo::ValueId value, std::int64_t elements);
  void compute(stablehlo::OpId id, std::int64_t elements);
  [[nodiscard]] Bytes bytes_of(const stablehlo::TensorType& type, std::int64_t elements) const;
  [[nodiscard]] bool is_read(stablehlo::ValueId value) const;
  [[nodiscard]] Bytes written(stablehlo::OpId id) const;

  const stablehlo::Module& module_;
  const stablehlo::Function& main_;
  MemoryTarget target_;
  Fusion fusion_;
  std::vector<int> fills_;  // by ValueId: how many states of loops begin with it; 0 for buffers
  std::vector<stablehlo::ValueId> computed_as_;  // by ValueId of an invariant argument of a body
  // Of the kernel at hand.
  std::vector<std::int64_t> needed_;  // by ValueId
  std::vector<stablehlo::ValueId> touched_;
  std::vector<Need> open_;
};

}  // namespace shardsim::spmd
