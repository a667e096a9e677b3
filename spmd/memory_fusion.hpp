// Which values of a program XLA keeps in memory, and which it computes inside the kernels that read
// them.
//
// A fusible op (elementwise, broadcast, slice, concatenate, ...) is kept in memory where a reader
// needs an address: collectives, loops, results, custom calls, the target of an update. Beyond that
//   TPU  dots, convolutions and reductions compute their operands on the fly
//   GPU  dots read memory, apart from casts, slices and broadcasts of it; and what is dear to
//   compute
//        (exp, divide, ...) is not computed again for a second reader
#pragma once

#include <optional>
#include <vector>

#include "spmd/memory.hpp"

namespace shardsim::spmd {

enum class OpKind { nothing, view, barrier, fusible, update, loop, branch, kernel };

struct Fusion {
  std::vector<OpKind> kind;     // by OpId
  std::vector<bool> is_live;    // by OpId
  std::vector<bool> is_buffer;  // by ValueId: needs memory of its own

  // State `i` of the loop is the same in every round.
  [[nodiscard]] static bool is_invariant(const stablehlo::Function& main, const stablehlo::Op& loop,
                                         std::size_t i);
  [[nodiscard]] static bool is_collective(const stablehlo::Op& op);
  // The array of which `value` is a dynamic slice, seen through views.
  [[nodiscard]] static std::optional<stablehlo::ValueId> sliced_stack(
      const stablehlo::Function& main, stablehlo::ValueId value);
};

[[nodiscard]] Fusion fusion_of(const stablehlo::Module& module, const stablehlo::Function& main,
                               MemoryTarget target);

// For each result of the function the argument whose place it takes, or -1.
[[nodiscard]] std::vector<int> donors_of_results(const stablehlo::Module& module,
                                                 const stablehlo::Function& main);

}  // namespace shardsim::spmd
