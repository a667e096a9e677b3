#include "workloads/step/gradient_tape.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/index.hpp"
#include "workloads/step/contributions.hpp"

namespace shardsim {
namespace {

// Results are differentiable where an operand is.
void reach(const Op& op, std::vector<bool>& differentiable) {
  const bool any = std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& o) {
    return static_cast<bool>(differentiable[at(o.tensor)]);
  });
  for (const Operand& result : op.results) differentiable[at(result.tensor)] = any;
}

}  // namespace

std::vector<bool> differentiable_tensors(const Workload& workload) {
  std::vector<bool> differentiable(workload.tensors.size());
  for (std::size_t t = 0; t < differentiable.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    differentiable[t] = tensor.role == TensorRole::parameter && tensor.trained;
  }
  // What a kind carries out may come back to it by way of others.
  const std::vector<Succession> pairs = successions(workload);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Block& block : workload.blocks) {
      for (const Op& op : block.forward) reach(op, differentiable);
    }
    for (const auto& [before, after] : pairs) {
      const std::vector<TensorId>& out = workload.blocks[before].carries_out;
      const std::vector<TensorId>& in = workload.blocks[after].carries_in;
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (!differentiable[at(out[i])] || differentiable[at(in[i])]) continue;
        differentiable[at(in[i])] = changed = true;
      }
    }
  }
  return differentiable;
}

GradientTape::GradientTape(Workload& workload)
    : workload_(workload),
      differentiable_(differentiable_tensors(workload)),
      read_by_loss_(workload.tensors.size()),
      gradients_(workload.tensors.size(), no_tensor) {
  find_read_by_loss();
}

// A layer behind the last that a head reads runs, and nothing comes back from it.
void GradientTape::find_read_by_loss() {
  for (std::size_t t = 0; t < read_by_loss_.size(); ++t) {
    read_by_loss_[t] = is_loss(static_cast<TensorId>(t));
  }
  const auto is_read = [&](const Operand& made) -> bool { return read_by_loss_[at(made.tensor)]; };
  const std::vector<Succession> pairs = successions(workload_);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Block& block : workload_.blocks) {
      std::for_each(block.forward.rbegin(), block.forward.rend(), [&](const Op& op) {
        if (std::none_of(op.results.begin(), op.results.end(), is_read)) return;
        for (const Operand& read : op.operands) read_by_loss_[at(read.tensor)] = true;
      });
    }
    for (const auto& [before, after] : pairs) {
      const std::vector<TensorId>& out = workload_.blocks[before].carries_out;
      const std::vector<TensorId>& in = workload_.blocks[after].carries_in;
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (!read_by_loss_[at(in[i])] || read_by_loss_[at(out[i])]) continue;
        read_by_loss_[at(out[i])] = changed = true;
      }
    }
  }
}

void GradientTape::begin_block(std::size_t block) {
  block_ = block;
  for (const TensorId carry : workload_.blocks[block].carries_out) {
    if (!needs_gradient(carry) || !read_by_loss_[at(carry)]) continue;
    gradients_[at(carry)] = new_gradient(operand(carry)).tensor;
  }
}

void GradientTape::differentiate(const Op& op) {
  const bool reached =
      std::any_of(op.results.begin(), op.results.end(), [&](const Operand& result) {
        return gradient_of(result.tensor) != no_tensor || is_loss(result.tensor);
      });
  if (!reached) return;
  op_ = &op;
  traits(op.function).gradient(op, *this);
  for (const Operand& result : op.results) gradients_[at(result.tensor)] = no_tensor;
}

void GradientTape::end_block() {
  for (const TensorId carry : workload_.blocks[block_].carries_in) {
    TensorId& gradient = gradients_[at(carry)];
    // The neighbour finds it by its primal. One that is another's, as of what was added to a value
    // of the same dims, is seen under a name of its own.
    if (gradient != no_tensor && tensor_of(gradient).primal != carry) {
      Op seen = op_of(Function::split, {operand(gradient)});
      seen.view = true;
      seen.results = {new_gradient(operand(carry))};
      emit(std::move(seen));
    }
    gradient = no_tensor;
  }
}

bool GradientTape::is_loss(TensorId tensor) const {
  const std::vector<TensorId>& further = workload_.further_losses;
  return tensor == workload_.loss || std::count(further.begin(), further.end(), tensor) > 0;
}

bool GradientTape::needs_gradient(TensorId tensor) const { return differentiable_[at(tensor)]; }

TensorId GradientTape::gradient_of(TensorId tensor) const { return gradients_[at(tensor)]; }

Operand GradientTape::operand(TensorId tensor) const { return {tensor, tensor_of(tensor).dims}; }

Operand GradientTape::new_gradient(const Operand& primal, std::optional<DType> dtype) {
  Tensor gradient = tensor_of(primal.tensor);
  gradient.name += ".grad";
  gradient.role = gradient.role == TensorRole::parameter ? TensorRole::parameter_gradient
                                                         : TensorRole::activation_gradient;
  gradient.block = static_cast<int>(block_);
  gradient.primal = primal.tensor;
  gradient.dtype = dtype.value_or(gradient.dtype);
  workload_.tensors.push_back(std::move(gradient));
  return {static_cast<TensorId>(workload_.tensors.size() - 1), primal.dims};
}

void GradientTape::emit(Op op) {
  op.name = op_->name;
  op.module = op_->module;
  op.part = op_->part;
  const OpKind kind = kind_of(op);
  if (kind == OpKind::einsum || kind == OpKind::attention) op.multiplied_in = op_->multiplied_in;
  workload_.blocks[block_].backward.push_back(std::move(op));
}

void GradientTape::contribute(TensorId primal, TensorId gradient) {
  TensorId& arrived = gradients_[at(primal)];
  if (arrived == no_tensor) {
    arrived = gradient;
    return;
  }
  TensorId target = arrived;
  // What one op made in a wider type is not narrowed.
  const DType first = tensor_of(target).dtype;
  const DType second = tensor_of(gradient).dtype;
  const DType wide = size_of(first) < size_of(second) ? second : first;
  target = cast_gradient(primal, target, wide);
  gradient = cast_gradient(primal, gradient, wide);
  if (is_shared(target, primal)) std::swap(target, gradient);
  Op add;
  add.function = Function::add;
  if (!is_shared(target, primal)) add.in_place = {{0, 0}};
  add.operands = {{target, tensor_of(primal).dims}, {gradient, tensor_of(primal).dims}};
  add.results = {new_gradient(operand(primal), wide)};
  arrived = add.results[0].tensor;
  emit(std::move(add));
}

TensorId GradientTape::cast_gradient(TensorId primal, TensorId gradient, DType dtype) {
  if (tensor_of(gradient).dtype == dtype) return gradient;
  Op cast;
  cast.function = Function::cast;
  cast.operands = {{gradient, tensor_of(primal).dims}};
  cast.results = {new_gradient(operand(primal), dtype)};
  const TensorId made = cast.results[0].tensor;
  emit(std::move(cast));
  return made;
}

bool GradientTape::is_shared(TensorId gradient, TensorId primal) const {
  for (std::size_t t = 0; t < gradients_.size(); ++t) {
    if (gradients_[t] == gradient && t != at(primal)) return true;
  }
  return false;
}

Tensor& GradientTape::tensor_of(TensorId tensor) { return workload_.tensors[at(tensor)]; }

const Tensor& GradientTape::tensor_of(TensorId tensor) const {
  return workload_.tensors[at(tensor)];
}

}  // namespace shardsim
