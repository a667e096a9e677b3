// The partitioner's state while it walks over a program, as the handlers of the ops see it.
//
//   void partition_transpose(Partitioner& p, const OpView& op) {
//     Sharded operand = p.operand(op, 0);
//     ...
//     p.set_result(op, 0, reshard(moved, p.tiling_of_result(op, 0)));
//   }
//
// A new op is one row of the table in op_handlers.cpp and one handler in a partition_*.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "spmd/sharded.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

using stablehlo::OpView;

class Partitioner {
 public:
  virtual ~Partitioner() = default;
  [[nodiscard]] virtual Context& context() = 0;
  [[nodiscard]] virtual Builder& builder() = 0;
  [[nodiscard]] virtual Sharded operand(const OpView& op, std::size_t index) = 0;
  [[nodiscard]] virtual Tiling tiling_of_result(const OpView& op, std::size_t index) = 0;
  // `value` has the tiling of the result (reshard before).
  virtual void set_result(const OpView& op, std::size_t index, const Sharded& value) = 0;
  // How many ops of the source read this result.
  [[nodiscard]] virtual int users_of_result(const OpView& op, std::size_t index) = 0;
  // The op with other operands and result types, its attributes and regions copied.
  virtual std::vector<ValueId> clone(const OpView& op, const std::vector<ValueId>& operands,
                                     const std::vector<TensorType>& types) = 0;
  // Operands whole, the op on every device, results resharded: what XLA does where it knows no
  // better.
  virtual void replicated(const OpView& op) = 0;
};

// A device's part of a result that lies like this.
[[nodiscard]] TensorType local_result(const OpView& op, std::size_t index, const Tiling& tiling);

using Handler = void (*)(Partitioner&, const OpView&);
// The row of the op's name in the table of op_handlers.cpp; null where there is none.
[[nodiscard]] Handler handler_of(const stablehlo::Op& op);
// A collective that the program itself asks for, in a manual computation.
[[nodiscard]] bool is_explicit_collective(std::string_view name);

// partition_elementwise.cpp: elementwise ops, broadcast_in_dim, transpose, iota, constants, ...
void partition_elementwise(Partitioner& p, const OpView& op);
void partition_broadcast(Partitioner& p, const OpView& op);
void partition_transpose(Partitioner& p, const OpView& op);
void partition_iota(Partitioner& p, const OpView& op);
void partition_reduce(Partitioner& p, const OpView& op);
// partition_dot*.cpp
void partition_dot_general(Partitioner& p, const OpView& op);
// partition_shape*.cpp, partition_window.cpp
void partition_reshape(Partitioner& p, const OpView& op);
void partition_slice(Partitioner& p, const OpView& op);
void partition_pad(Partitioner& p, const OpView& op);
void partition_concatenate(Partitioner& p, const OpView& op);
void partition_dynamic_slice(Partitioner& p, const OpView& op);
void partition_dynamic_update_slice(Partitioner& p, const OpView& op);
void partition_rotate(Partitioner& p, const OpView& op);
void partition_reverse(Partitioner& p, const OpView& op);
void partition_sort(Partitioner& p, const OpView& op);
void partition_reduce_window(Partitioner& p, const OpView& op);
void partition_select_and_scatter(Partitioner& p, const OpView& op);
void partition_convolution(Partitioner& p, const OpView& op);
void partition_custom_call(Partitioner& p, const OpView& op);
// partition_gather.cpp, partition_scatter.cpp
void partition_gather(Partitioner& p, const OpView& op);
void partition_scatter(Partitioner& p, const OpView& op);

}  // namespace shardsim::spmd
