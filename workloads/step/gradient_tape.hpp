// Writes the backward pass of a block while its forward ops are walked in reverse.
//
// Contributions to the gradient of one tensor are added up as they arrive, in one chain of linear
// adds that nobody reads before it is complete. So partial sums pass through: the gradients that q,
// k and v give their common input are added first and reduced once (Megatron).
//
// What a sum passes to its addends is the same tensor, not a copy: the gradient of a residual add
// is the gradient of both its addends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// By tensor of the forward pass: a trained parameter, or made of one.
[[nodiscard]] std::vector<bool> differentiable_tensors(const Workload& workload);

class GradientTape {
 public:
  explicit GradientTape(Workload& workload);

  // The gradients of what the block carries out enter.
  void begin_block(std::size_t block);
  void differentiate(const Op& op);
  void end_block();

  // For the rules (gradient_rules.hpp).
  [[nodiscard]] bool needs_gradient(TensorId tensor) const;
  [[nodiscard]] TensorId gradient_of(TensorId tensor) const;  // no_tensor: none has arrived
  [[nodiscard]] Operand operand(TensorId tensor) const;       // under its own dims
  [[nodiscard]] DType dtype_of(TensorId tensor) const { return tensor_of(tensor).dtype; }
  // A tensor for a contribution to the gradient of `primal`; `dims` are its labels seen by the op.
  // Without `dtype` it has that of `primal`.
  [[nodiscard]] Operand new_gradient(const Operand& primal, std::optional<DType> dtype = {});
  void emit(Op op);
  void contribute(TensorId primal, TensorId gradient);

 private:
  [[nodiscard]] bool is_loss(TensorId tensor) const;
  [[nodiscard]] Tensor& tensor_of(TensorId tensor);
  [[nodiscard]] const Tensor& tensor_of(TensorId tensor) const;
  void find_read_by_loss();
  // `gradient` of `primal` in `dtype`.
  TensorId cast_gradient(TensorId primal, TensorId gradient, DType dtype);
  // Does the gradient of another tensor lie in `gradient` as well?
  [[nodiscard]] bool is_shared(TensorId gradient, TensorId primal) const;

  Workload& workload_;
  std::size_t block_ = 0;
  const Op* op_ = nullptr;            // that is being differentiated
  std::vector<bool> differentiable_;  // differentiable_tensors
  std::vector<bool> read_by_loss_;    // by forward tensor: a loss, or something of it is made of it
  std::vector<TensorId> gradients_;   // by forward tensor: what has arrived so far
};

}  // namespace shardsim
