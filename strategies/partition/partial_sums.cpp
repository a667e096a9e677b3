#include "strategies/partition/partial_sums.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "strategies/layout/context_axes.hpp"

namespace shardsim {
TensorId last_gradient(const Workload& workload, const Block& block, TensorId primal) {
  for (auto op = block.backward.rbegin(); op != block.backward.rend(); ++op) {
    for (const Operand& result : op->results) {
      const Tensor& tensor = workload.tensors[at(result.tensor)];
      const bool is_gradient = tensor.role == TensorRole::activation_gradient ||
                               tensor.role == TensorRole::parameter_gradient;
      if (is_gradient && tensor.primal == primal) return result.tensor;
    }
  }
  return no_tensor;
}

TensorId entering_gradient(const Workload& workload, const Block& block, TensorId carry) {
  for (const Op& op : block.backward) {
    for (const Operand& operand : op.operands) {
      const Tensor& tensor = workload.tensors[at(operand.tensor)];
      if (tensor.role == TensorRole::activation_gradient && tensor.primal == carry)
        return operand.tensor;
    }
  }
  // Of what the block only hands on, no op reads it.
  const std::vector<TensorId>& in = block.carries_in;
  if (std::find(in.begin(), in.end(), carry) == in.end()) return no_tensor;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    if (tensor.role == TensorRole::activation_gradient && tensor.primal == carry) {
      return static_cast<TensorId>(t);
    }
  }
  return no_tensor;
}

PartialSums::PartialSums(const Workload& workload, const TensorShardings& shardings,
                         const Layout& layout)
    : workload_(workload),
      shardings_(shardings),
      layout_(layout),
      ring_(ring_axes(layout)),
      heads_(head_axes(layout)),
      sums_rows_(layout.input_gradients == InputGradients::late &&
                 !(layout.experts && !layout.experts->parallel.empty())),
      maker_(workload.tensors.size()),
      use_(workload.tensors.size()) {
  for (const Block& block : workload.blocks) {
    for (const std::vector<Op>* ops : {&block.forward, &block.backward, &block.optimizer}) {
      for (const Op& op : *ops) {
        for (const Operand& operand : op.operands) {
          use_[at(operand.tensor)].ops.push_back(&op);
          ++use_[at(operand.tensor)].readers;
        }
        for (const Operand& result : op.results) maker_[at(result.tensor)] = &op;
      }
    }
    for (const TensorId carry : block.carries_out) ++use_[at(carry)].readers;
    // The last gradient of a carry that a block makes leaves it: its reader is in the block before.
    for (const TensorId carry : block.carries_in) {
      const TensorId leaving = last_gradient(workload, block, carry);
      if (leaving == no_tensor) continue;
      ++use_[at(leaving)].readers;
      leaving_.insert(leaving);
    }
  }
}

FactorAxes PartialSums::factors_of(const Op& op) const { return factors_of(op, passed_on(op)); }

FactorAxes PartialSums::factors_of(const Op& op, const AxisList& passed) const {
  FactorAxes factors = choose_factors(workload_, op, shardings_);
  if (splits_context(op) && !heads_.empty()) split_heads(op, factors);
  for (auto& [factor, axes] : factors) {
    std::erase_if(axes, [&](const AxisRef& axis) { return overlaps_any(axis, passed); });
  }
  for (const Operand& result : op.results) leave_whole(result, factors);
  return factors;
}

// What is added to sums is made as whole as these are.
void PartialSums::leave_whole(const Operand& result, FactorAxes& factors) const {
  const AxisList sums = added_to(result.tensor);
  for (const Dim& dim : result.dims) {
    for (const LabelId label : dim) {
      const auto found = factors.find(label);
      if (found == factors.end()) continue;
      std::erase_if(found->second, [&](const AxisRef& axis) { return overlaps_any(axis, sums); });
    }
  }
}

AxisList PartialSums::made(TensorId tensor) const {
  const Op* op = maker_[at(tensor)];
  if (op == nullptr) return is_of_no_example(tensor) ? batch_axes() : AxisList{};
  if (is_left_apart(tensor)) return {};
  const auto result = std::find_if(op->results.begin(), op->results.end(),
                                   [&](const Operand& r) { return r.tensor == tensor; });
  // Once: along a chain of linear ops each asks the one before.
  const AxisList passed_by_op = passed_on(*op);
  AxisList axes = summed_axes(*op, result->dims, factors_of(*op, passed_by_op));
  const bool has_heads = layout_.context.states == StateMethod::heads &&
                         kind_of(*op) == OpKind::chunked_scan &&
                         workload_.tensors[at(tensor)].role != TensorRole::parameter_gradient;
  if (has_heads) {  // of whole sequences (state_exchange.hpp)
    std::erase_if(axes, [&](const AxisRef& axis) { return contains(layout_.sequence_axes, axis); });
  }
  if (splits_context(*op) && !ring_.empty()) {
    // Gradients of keys come home whole.
    std::erase_if(axes, [&](const AxisRef& axis) { return contains(ring_, axis); });
  }
  // Gradients of rows are made of whole ones, those of their weights of the rows.
  const bool is_of_rows = sums_tokens(*op) && op->function == Function::combine_backward &&
                          op->results.front().tensor == tensor;
  const AxisList passed = is_of_rows ? AxisList{} : passed_by_op;
  axes.insert(axes.end(), passed.begin(), passed.end());
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool PartialSums::splits_context(const Op& op) const {
  if (kind_of(op) != OpKind::attention || layout_.sequence_axes.empty()) return false;
  const std::vector<LabelId> labels = shardsim::factors(op);
  return std::any_of(labels.begin(), labels.end(), [&](LabelId label) {
    return workload_.labels[at(label)].role == LabelRole::sequence;
  });
}

// In place of the sequence, of which a ring's part is left.
void PartialSums::split_heads(const Op& op, FactorAxes& factors) const {
  for (auto& [factor, axes] : factors) {
    const auto removed = std::erase_if(
        axes, [&](const AxisRef& axis) { return contains(layout_.sequence_axes, axis); });
    if (removed > 0) axes.insert(axes.end(), ring_.begin(), ring_.end());
  }
  for (const LabelId factor : shardsim::factors(op)) {
    if (workload_.labels[at(factor)].role != LabelRole::heads) continue;
    AxisList& axes = factors[factor];
    axes.insert(axes.end(), heads_.begin(), heads_.end());
  }
}

bool PartialSums::adds_gradients(const Op& op) const {
  return op.operands.size() > 1 &&
         std::all_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& operand) { return is_activation_gradient(operand); });
}

// Of experts' rows, as tokens or as other gradients were added to them.
bool PartialSums::adds_rows(const Op& op) const {
  if (!sums_rows_ || !adds_gradients(op)) return false;
  return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
    const Op* maker = maker_[at(operand.tensor)];
    if (maker == nullptr) return false;
    return maker->function == Function::dispatch_backward ||
           (maker->function == op.function && adds_rows(*maker));
  });
}

bool PartialSums::is_activation_gradient(const Operand& operand) const {
  return workload_.tensors[at(operand.tensor)].role == TensorRole::activation_gradient;
}

// Gradients are linear in what they are made of.
bool PartialSums::is_late(const Op& op) const {
  const bool is_of_latents = op.part == OpPart::query_latent || op.part == OpPart::key_latent ||
                             op.part == OpPart::from_latents;
  return layout_.input_gradients == InputGradients::late && is_of_latents &&
         std::any_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& operand) { return is_activation_gradient(operand); });
}

// Rows that lie whole on every device, of products whose width is split: forward the combination is
// read by what adds it up with shared experts, each reduced by itself.
bool PartialSums::sums_tokens(const Op& op) const {
  return sums_rows_ &&
         (op.function == Function::combine || op.function == Function::combine_backward ||
          op.function == Function::dispatch_backward);
}

// Of combine (rows, ...), of its backward (gradient, numbers, rows, ...), of dispatch's (rows'
// gradient, ...).
AxisList PartialSums::passed_to_tokens(const Op& op) const {
  const bool is_back = op.function == Function::combine_backward;
  if (is_back && op.operands.size() < 4) return {};
  const TensorId rows = op.operands[is_back ? 2 : 0].tensor;
  return may_stay(rows) ? made(rows) : AxisList{};
}

bool PartialSums::may_stay(TensorId tensor) const {
  const Use& use = use_[at(tensor)];
  const Op* maker = maker_[at(tensor)];
  if (maker != nullptr && maker->function == Function::combine && sums_tokens(*maker)) return false;
  if (use.readers == 1) return true;
  const bool are_ops = static_cast<int>(use.ops.size()) == use.readers;
  const bool stays_without_examples =
      are_ops && is_of_no_example(tensor) &&
      std::all_of(use.ops.begin(), use.ops.end(),
                  [&](const Op* op) { return goes_back_without_examples(*op); });
  if (stays_without_examples) return true;
  const bool becomes_tokens =
      std::all_of(use.ops.begin(), use.ops.end(), [&](const Op* op) { return sums_tokens(*op); });
  if (becomes_tokens && are_ops) return true;
  return are_ops && std::all_of(use.ops.begin(), use.ops.end(), [&](const Op* op) {
           return is_late(*op) &&
                  std::count_if(op->operands.begin(), op->operands.end(),
                                [&](const Operand& o) { return is_activation_gradient(o); }) == 1;
         });
}

AxisList PartialSums::passed_on(const Op& op) const {
  if (sums_tokens(op)) return passed_to_tokens(op);
  const bool late = is_late(op);
  if (goes_back_without_examples(op)) return passed_without_examples(op);
  if (!late && !traits(op.function).linear) return {};
  if (layout_.input_gradients == InputGradients::apart && adds_gradients(op)) return {};
  // A whole gradient beside sums is the sum of itself on one device and of nothing on the others.
  const bool takes_whole = adds_rows(op);
  AxisList common;
  bool first = true;
  for (const Operand& operand : op.operands) {
    const TensorRole role = workload_.tensors[at(operand.tensor)].role;
    if (is_given(role) || role == TensorRole::parameter) continue;
    if (late && !is_activation_gradient(operand)) continue;
    const AxisList other = may_stay(operand.tensor) ? made(operand.tensor) : AxisList{};
    if (takes_whole && other.empty()) continue;
    if (first) common = other;
    std::erase_if(common, [&](const AxisRef& axis) { return !contains(other, axis); });
    first = false;
  }
  // Of the context, keys' gradients are scattered at once.
  if (late && !traits(op.function).linear) {
    std::erase_if(common, [&](const AxisRef& axis) { return !contains(layout_.model_axes, axis); });
  }
  return common;
}

bool PartialSums::is_summand(TensorId tensor) const {
  const Use& use = use_[at(tensor)];
  return use.readers == 1 && !use.ops.empty() && kind_of(*use.ops.back()) != OpKind::optimizer;
}

bool PartialSums::is_left_apart(TensorId gradient) const {
  const Tensor& tensor = workload_.tensors[at(gradient)];
  return tensor.role == TensorRole::activation_gradient && tensor.primal != no_tensor &&
         workload_.tensors[at(tensor.primal)].gradient_apart;
}

bool PartialSums::is_of_no_example(TensorId gradient) const {
  const Tensor& tensor = workload_.tensors[at(gradient)];
  if (tensor.role != TensorRole::activation_gradient) return false;
  // A number that no op makes is the loss's own.
  if (tensor.dims.empty() && maker_[at(gradient)] == nullptr) return false;
  return std::none_of(tensor.dims.begin(), tensor.dims.end(), [&](const Dim& dim) {
    return std::any_of(dim.begin(), dim.end(), [&](LabelId label) {
      return workload_.labels[at(label)].role == LabelRole::batch;
    });
  });
}

bool PartialSums::goes_back_without_examples(const Op& op) const {
  if (kind_of(op) == OpKind::optimizer) return false;
  bool any = false;
  for (const Operand& operand : op.operands) {
    if (!is_activation_gradient(operand)) continue;
    if (!is_of_no_example(operand.tensor)) return false;
    any = true;
  }
  return any;
}

AxisList PartialSums::passed_without_examples(const Op& op) const {
  AxisList common = batch_axes();
  for (const Operand& operand : op.operands) {
    if (!is_activation_gradient(operand)) continue;
    const AxisList other = may_stay(operand.tensor) ? made(operand.tensor) : AxisList{};
    std::erase_if(common, [&](const AxisRef& axis) { return !contains(other, axis); });
  }
  return common;
}

AxisList PartialSums::batch_axes() const {
  AxisList axes = layout_.data_axes;
  std::erase_if(axes, [&](const AxisRef& axis) { return contains(layout_.sequence_axes, axis); });
  return axes;
}

AxisList PartialSums::added_to(TensorId gradient) const {
  const Use& use = use_[at(gradient)];
  const bool is_added = use.readers == 1 && use.ops.size() == 1 && adds_rows(*use.ops.front());
  return is_added ? layout_.model_axes : AxisList{};
}

AxisList PartialSums::kept(TensorId tensor) const {
  if (leaving_.contains(tensor) && is_of_no_example(tensor)) {
    AxisList axes = made(tensor);
    const AxisList batch = batch_axes();
    std::erase_if(axes, [&](const AxisRef& axis) { return !contains(batch, axis); });
    return axes;
  }
  const std::vector<const Op*>& readers = use_[at(tensor)].ops;
  if (!may_stay(tensor) && use_[at(tensor)].readers == 1) return {};
  const bool has_more = use_[at(tensor)].readers > 1;
  if (readers.empty() || !(has_more ? may_stay(tensor) : is_summand(tensor))) return {};
  AxisList common = made(tensor);
  if (kind_of(*readers.back()) == OpKind::exchange) return common;  // reduced as it is sent
  for (const Op* reader : readers) {
    const AxisList carried = passed_on(*reader);
    std::erase_if(common, [&](const AxisRef& axis) { return !contains(carried, axis); });
  }
  return common;
}

}  // namespace shardsim
