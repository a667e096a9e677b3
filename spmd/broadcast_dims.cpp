#include "spmd/broadcast_dims.hpp"

#include <algorithm>

#include "spmd/collective_plan.hpp"
#include "stablehlo/op_rules.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::OpView;
using stablehlo::Shape;

// A dimension of the result stands for one of the operand that is a multiple or a part of it.
Dims after_reshape(const Dims& before, const Shape& from, const Shape& to) {
  Dims result;
  std::size_t i = 0;
  std::size_t j = 0;
  std::int64_t left_from = from.empty() ? 1 : from[0];
  std::int64_t left_to = to.empty() ? 1 : to[0];
  bool is_broadcast = true;  // dimension j, as far as it has been seen
  while (i < from.size() && j < to.size()) {
    if (left_from == 0 || left_to == 0) return {};
    is_broadcast = is_broadcast && holds(before, static_cast<std::int64_t>(i));
    const bool from_ends = left_to % left_from == 0;
    const bool to_ends = left_from % left_to == 0;
    if (!from_ends && !to_ends) return {};
    const std::int64_t common = std::min(left_from, left_to);
    left_from /= common;
    left_to /= common;
    if (from_ends && ++i < from.size()) left_from = from[i];
    if (!to_ends) continue;
    if (is_broadcast) result.push_back(static_cast<std::int64_t>(j));
    is_broadcast = true;
    if (++j < to.size()) left_to = to[j];
  }
  return i == from.size() && j == to.size() ? result : Dims{};
}

Dims after_transpose(const Dims& before, const Dims& permutation) {
  Dims result;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (holds(before, permutation[i])) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

Dims after_pad(const Dims& before, const OpView& op) {
  const Shape low = op.integers({"low", "edge_padding_low"});
  const Shape high = op.integers({"high", "edge_padding_high"});
  const Shape interior = op.integers({"interior", "interior_padding"});
  Dims result;
  for (const std::int64_t dim : before) {
    const auto i = static_cast<std::size_t>(dim);
    if (low[i] == 0 && high[i] == 0 && interior[i] == 0) result.push_back(dim);
  }
  return result;
}

Dims new_dims(const OpView& op) {
  const Dims kept = op.integers_or_none({"dims", "broadcast_dimensions"});
  Dims result;
  for (const std::int64_t dim : iota_dims(op.result(0).size())) {
    if (!holds(kept, dim)) result.push_back(dim);
  }
  return result;
}

}  // namespace

void BroadcastDims::note(const OpView& op) {
  const std::string& name = op.op().name;
  if (op.op().results.size() != 1) return;
  Dims dims;
  if (name == "stablehlo.broadcast_in_dim") {
    dims = new_dims(op);
  } else if (!op.op().operands.empty()) {
    dims = of(op.op().operands.front());
    if (dims.empty()) return;
    if (name == "stablehlo.reshape") {
      dims = after_reshape(dims, op.operand(0), op.result(0));
    } else if (name == "stablehlo.transpose") {
      dims = after_transpose(dims, op.integers({"dims", "permutation"}));
    } else if (name == "stablehlo.pad") {
      dims = after_pad(dims, op);
    } else if (name == "spmd.copy" ||
               (stablehlo::is_elementwise(name) && !is_collective(op.op()))) {
      for (const stablehlo::ValueId operand : op.op().operands) {
        const Dims& other = of(operand);
        std::erase_if(dims, [&](std::int64_t dim) { return !holds(other, dim); });
      }
    } else if (name != "stablehlo.slice" && name != "stablehlo.dynamic_slice") {
      return;
    }
  }
  if (!dims.empty()) dims_[op.op().results.front()] = std::move(dims);
}

const Dims& BroadcastDims::of(stablehlo::ValueId value) const {
  static const Dims none;
  const auto found = dims_.find(value);
  return found == dims_.end() ? none : found->second;
}

}  // namespace shardsim::spmd
