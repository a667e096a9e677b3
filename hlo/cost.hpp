// Work of one instruction on one device: operations and bytes of memory traffic.
//
// Operations follow XLA's own count (HloCostAnalysis of openxla/xla), so that they can be compared
// with `compiled.cost_analysis()`: two per multiply-add of a dot or convolution, one per element of
// arithmetic, transcendental functions apart, a reduction as often as its function is applied.
//
//   dot f32[8,2048] of [8,512] x [512,2048]     2 * 8 * 2048 * 512
//   convolution                                 only positions of the window that hold input, not
//                                               padding or holes of a dilation
//
// TPU compilers print matmuls as convolutions; a window as large as its operand is a matmul whose
// padding holds nothing.
//
// Bytes are operands read and results written, in their layouts. A fusion reads of an operand only
// what it slices out of it, and an update in place writes only the update.
//
// What a custom call does is not in the text. Known ones (matrix products and convolutions of
// cuBLAS and cuDNN, and TPU's that move nothing) are counted; of others, and of instructions that
// hlo/opcodes.hpp does not know, only the bytes, and `unknown` names them.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "hlo/callers.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct HloCost {
  Flops flops;
  Flops transcendentals;
  Flops matmul_flops;  // of dots and convolutions, part of flops
  DType matmul_dtype = DType::bf16;
  std::optional<Product> product;  // where they are one dot
  std::string unknown;             // what has operations that are not counted: custom call "f"
};

class HloCostModel {
 public:
  explicit HloCostModel(const HloModule& module) : module_(module), shapes_(module) {}

  // Operations of an instruction, of everything inside a fusion; loops once, of a
  // conditional the largest branch. Of collectives an all-reduce counts an operation per element.
  [[nodiscard]] HloCost operations(HloId id);
  [[nodiscard]] const HloCost& operations_of(HloComputationId computation);
  [[nodiscard]] Bytes bytes(HloId id);
  // Both, as the plan holds them.
  [[nodiscard]] Kernel kernel(HloId id);

 private:
  HloCost count_custom_call(HloId id);
  HloCost largest_branch(HloId id);
  [[nodiscard]] std::int64_t reduce_window_applications(HloId id);
  HloCost apply(HloId id, std::int64_t times);
  [[nodiscard]] std::int64_t extent(HloId id, std::size_t operand, std::string_view attribute);
  [[nodiscard]] double dot_flops(HloId id);
  [[nodiscard]] std::optional<Product> dot_product(HloId id);
  [[nodiscard]] double convolution_flops(HloId id, const HloShape& result);
  [[nodiscard]] Bytes fusion_bytes(HloId id);
  [[nodiscard]] Bytes read_bytes(HloComputationId computation, const HloUsers& users,
                                 HloId parameter);

  const HloModule& module_;
  HloShapes shapes_;
  std::unordered_map<HloComputationId, HloCost> known_;
};

// Custom calls that move nothing and compute nothing: markers of the compiler.
[[nodiscard]] bool is_marker(std::string_view custom_call_target);
[[nodiscard]] std::string_view custom_call_target(const HloModule& module, HloId id);

}  // namespace shardsim
