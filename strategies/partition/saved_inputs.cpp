#include "strategies/partition/saved_inputs.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim {

bool repeats_forward(const Block& block) {
  return std::any_of(block.backward.begin(), block.backward.end(),
                     [](const Op& op) { return op.recompute; });
}

std::set<TensorId> kept_for_backward(const Workload& workload) {
  std::set<TensorId> kept;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.backward) {
      for (const Operand& operand : op.operands) kept.insert(operand.tensor);
    }
    kept.insert(block.carries_out.begin(), block.carries_out.end());
    // What is kept in part is kept whole.
    for (auto op = block.forward.rbegin(); op != block.forward.rend(); ++op) {
      if (!op->view && op->in_place.empty()) continue;
      const bool is_part =
          std::any_of(op->results.begin(), op->results.end(),
                      [&](const Operand& result) { return kept.contains(result.tensor); });
      if (is_part) kept.insert(op->operands.front().tensor);
    }
  }
  return kept;
}

void SavedInputs::keep(TensorId id, ValueId made) {
  if (!shards_ || builder_.tensor(id).role != TensorRole::activation) return;
  if (whole_.contains(id) || whole_.contains(builder_.tensor(id).primal)) return;
  const ValueId home = home_[at(id)];
  const bool is_gathered = builder_.value(made).sharding.partial.empty() &&
                           builder_.value(home).bytes > builder_.value(made).bytes;
  if (!is_gathered) return;
  builder_.value(home).category = BufferCategory::temporaries;
  parts_[id] = made;
}

void SavedInputs::gather(const Op& op, const Block& block, BlockPass& pass) {
  if (parts_.empty()) return;
  if (op.recompute) {
    gather_for_repeat(op, pass);
    return;
  }
  for (const Op& product : block.forward) {
    if (product.name != op.name || kind_of(product) != OpKind::einsum) continue;
    for (const Operand& operand : product.operands) gather_once(operand.tensor, op, pass);
  }
  for (const Operand& operand : op.operands) gather_once(operand.tensor, op, pass);
}

void SavedInputs::gather_for_repeat(const Op& op, BlockPass& pass) {
  for (const Operand& operand : op.operands) {
    const auto part = parts_.find(operand.tensor);
    if (part == parts_.end() || is_repeated(operand.tensor)) continue;
    if (!gathered_for_repeat_.insert(operand.tensor).second) continue;
    bring_home(operand.tensor, part->second, op, pass);
  }
}

// A tensor, or what repeats it.
void SavedInputs::gather_once(TensorId tensor, const Op& op, BlockPass& pass) {
  for (auto part = parts_.begin(); part != parts_.end();) {
    const TensorId id = part->first;
    const bool repeats = builder_.tensor(id).primal == tensor && is_repeated(id);
    if (id != tensor && !repeats) {
      ++part;
      continue;
    }
    bring_home(id, part->second, op, pass);
    part = parts_.erase(part);
  }
}

void SavedInputs::bring_home(TensorId id, ValueId part, const Op& op, BlockPass& pass) {
  const OpReads reason{&op, part, shardings_.of(id)};
  home_[at(id)] = builder_.bring(part, shardings_.of(id), Stream::activations, reason, pass.body);
  builder_.value(home_[at(id)]).category = BufferCategory::temporaries;
}

bool SavedInputs::is_repeated(TensorId tensor) const {
  const Tensor& t = builder_.tensor(tensor);
  return t.role == TensorRole::activation && t.primal != no_tensor;
}

}  // namespace shardsim
