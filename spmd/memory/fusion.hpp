// Which values of a program XLA keeps in memory, and which it computes inside the kernels that read
// them.
//
// A fusible op (elementwise, broadcast, slice, concatenate, ...) is kept in memory where a reader
// needs an address: collectives, loops, results, custom calls, the target of an update. Beyond that
//   TPU  dots, convolutions and reductions compute operands on the fly. Only what takes a dear
//        function (exp, divide, ...) of every element, is rounded, and is read by several dots
//        without batch dimensions is computed once, and written in two orders when they contract
//        different dimensions: the cotangent of the logits (llama3-8b, qwen3-1.7b with fsdp).
//        What is added to the result of a dot and read more than once is written by the dot: a
//        residual stream is one array per layer (unrolled qwen3-0.6b on v5e, llama3-8b on v5p)
//   GPU  dots read memory, apart from casts, slices and broadcasts of it; and what is dear is not
//        computed again for a second reader if it is no larger than what it is computed from: exp
//        of fp32 scores is kept, exp of bf16 logits is not (qwen3-0.6b on A100)
#pragma once

#include <optional>
#include <vector>

#include "spmd/memory/device_memory.hpp"

namespace shardsim::spmd {

enum class OpKind { terminator, view, barrier, fusible, update, loop, branch, kernel };

struct Fusion {
  std::vector<OpKind> kind;         // by OpId
  std::vector<bool> is_live;        // by OpId: somebody reads a result
  std::vector<bool> is_buffer;      // by ValueId: needs memory of its own
  std::vector<bool> in_two_orders;  // by ValueId
  std::vector<int> readers;         // by ValueId: kernels computed from it with nothing between

  // State `i` of the loop is the same in every round.
  [[nodiscard]] bool is_invariant(const stablehlo::Function& main, const stablehlo::Op& loop,
                                  std::size_t i) const;
  // What `value` is a view of, itself if it is none.
  [[nodiscard]] stablehlo::ValueId viewed(const stablehlo::Function& main,
                                          stablehlo::ValueId value) const;
  // The array of which `value` is a dynamic slice, seen through views.
  [[nodiscard]] std::optional<stablehlo::ValueId> sliced_stack(const stablehlo::Function& main,
                                                               stablehlo::ValueId value) const;
};

// `is_tight`: as in kernels_of(). Throws InputError: attributes of dots that contradict their
// types.
[[nodiscard]] Fusion fusion_of(const stablehlo::Module& module, const stablehlo::Function& main,
                               MemoryTarget target, bool is_tight = false);

[[nodiscard]] bool is_dot(const stablehlo::Op& op);  // or a convolution
// Elements of `to` take fewer bits than those of `from`.
[[nodiscard]] bool is_narrower(const stablehlo::TensorType& to, const stablehlo::TensorType& from);

// For each result of the function the argument whose place it takes, or -1. An argument that is
// donated without saying for what takes the first result of its type, as jax does. Throws
// InputError: a result that does not exist, an argument and a result of different types.
[[nodiscard]] std::vector<int> donors_of_results(const stablehlo::Module& module,
                                                 const stablehlo::Function& main);

}  // namespace shardsim::spmd
