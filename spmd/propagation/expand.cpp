#include <algorithm>
#include <numeric>

#include "base/index.hpp"
#include "spmd/propagation/constants.hpp"
#include "spmd/propagation/function_rewriter.hpp"
#include "spmd/propagation/op_kinds.hpp"
#include "spmd/propagation/prepare_passes.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::Op;
using stablehlo::TensorType;
using stablehlo::ValueId;

namespace {

std::vector<std::int64_t> integers(const Op& op, std::string_view name) {
  const stablehlo::Attribute* attribute = find(op.attributes, name);
  return attribute == nullptr ? std::vector<std::int64_t>{}
                              : stablehlo::integers_of(*attribute, "", op.line);
}

TensorType with_dims(const TensorType& type, std::vector<std::int64_t> dims) {
  TensorType result = type;
  result.dims = std::move(dims);
  return result;
}

class Expander : public FunctionRewriter {
 private:
  bool rewrite(const Op& op) override {
    if (is_constant(op)) return expand_constant(op);
    if (op.name == "stablehlo.broadcast_in_dim") return expand_broadcast(op);
    if (op.name == "stablehlo.select" || op.name == "stablehlo.clamp") return expand_scalars(op);
    return false;
  }

  ValueId broadcast(ValueId operand, const std::vector<std::int64_t>& dims, const TensorType& type,
                    int line) {
    Op op;
    op.name = "stablehlo.broadcast_in_dim";
    op.line = line;
    op.operands = {operand};
    op.attributes.push_back(integers_attribute("dims", dims));
    return create(std::move(op), type);
  }

  ValueId reshape(ValueId operand, const TensorType& type, int line) {
    Op op;
    op.name = "stablehlo.reshape";
    op.line = line;
    op.operands = {operand};
    return create(std::move(op), type);
  }

  bool expand_constant(const Op& op) {
    const TensorType& type = result_type(op);
    const std::optional<std::string> text = splat_text(op);
    if (!text || type.elements() == 1) return false;
    Op scalar = constant_op(*text);
    scalar.line = op.line;
    const ValueId value = create(std::move(scalar), with_dims(type, {}));
    replace(op.results.front(), broadcast(value, {}, type, op.line));
    return true;
  }

  // A scalar predicate or limit is as large as the result.
  bool expand_scalars(const Op& op) {
    const TensorType& type = result_type(op);
    if (is_scalar(type)) return false;
    std::vector<ValueId> operands = renamed(op.operands);
    for (ValueId& operand : operands) {
      const TensorType scalar = target_type(operand);
      if (!is_scalar(scalar)) continue;
      operand = broadcast(operand, {}, with_dims(scalar, type.dims), op.line);
    }
    const stablehlo::OpId made = copy(op);
    target().ops[at(made)].operands = std::move(operands);
    return true;
  }

  // Of a dimension of size 1 that is stretched: first dimensions move to their places, then those
  // of size 1 go, then the rest is broadcast.
  bool expand_broadcast(const Op& op) {
    const ValueId operand = renamed(op.operands.front());
    std::vector<std::int64_t> dims = integers(op, "dims");
    if (!std::is_sorted(dims.begin(), dims.end())) return unfuse_transpose(op, operand, dims);
    return stretch(op, operand, dims);
  }

  bool stretch(const Op& op, ValueId operand, const std::vector<std::int64_t>& dims) {
    const TensorType from = target_type(operand);
    const TensorType& to = result_type(op);
    TensorType placed = to;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      placed.dims[at(dims[i])] = from.dims[i];
    }
    const ValueId in_place = broadcast(operand, dims, placed, op.line);
    if (placed == to) {
      replace(op.results.front(), in_place);
      return true;
    }
    std::vector<std::int64_t> kept_dims;
    std::vector<std::int64_t> kept_sizes;
    for (std::size_t d = 0; d < to.rank(); ++d) {
      if (placed.dims[d] != to.dims[d]) continue;
      kept_dims.push_back(static_cast<std::int64_t>(d));
      kept_sizes.push_back(to.dims[d]);
    }
    const ValueId smaller = reshape(in_place, with_dims(from, kept_sizes), op.line);
    replace(op.results.front(), broadcast(smaller, kept_dims, to, op.line));
    return true;
  }

  // Dimensions that do not come in order are put in order first.
  bool unfuse_transpose(const Op& op, ValueId operand, std::vector<std::int64_t> dims) {
    std::vector<std::int64_t> order(dims.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::int64_t a, std::int64_t b) { return dims[at(a)] < dims[at(b)]; });
    const TensorType from = target_type(operand);
    std::vector<std::int64_t> sizes;
    for (const std::int64_t dim : order) sizes.push_back(from.dims[at(dim)]);
    Op transpose;
    transpose.name = "stablehlo.transpose";
    transpose.line = op.line;
    transpose.operands = {operand};
    transpose.attributes.push_back(integers_attribute("dims", order));
    const ValueId sorted = create(std::move(transpose), with_dims(from, std::move(sizes)));
    std::sort(dims.begin(), dims.end());
    return stretch(op, sorted, dims);
  }
};

}  // namespace

Function expand(const Function& function) { return Expander().run(function); }

}  // namespace shardsim::spmd
