#include <algorithm>

#include "base/index.hpp"
#include "spmd/builder.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/propagation/function_rewriter.hpp"
#include "spmd/propagation/prepare_passes.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::Op;
using stablehlo::OpView;
using stablehlo::TensorType;
using stablehlo::ValueId;

class MoveSimplifier : public FunctionRewriter {
 public:
  MoveSimplifier(const stablehlo::Module& module, const Function& function)
      : module_(module), readers_(reader_counts(function)) {}

 private:
  bool rewrite(const Op& op) override {
    if (op.name == "stablehlo.reverse") return rewrite_reverse(op);
    if (op.name == "stablehlo.pad") return rewrite_pad(op);
    if (op.name == "stablehlo.concatenate") return rewrite_concatenate(op);
    return op.name == "stablehlo.slice" && rewrite_slice(op);
  }

  bool rewrite_reverse(const Op& op) {
    const ValueId operand = renamed(op.operands.front());
    const Shape& shape = target_type(operand).dims;
    const Dims dims = OpView(module_, source(), op).integers({"dims", "dimensions"});
    const bool moves = std::any_of(dims.begin(), dims.end(),
                                   [&](std::int64_t dim) { return shape[at(dim)] != 1; });
    if (!moves) replace(op.results.front(), operand);
    return !moves;
  }

  // Of nothing: padding everywhere.
  bool rewrite_pad(const Op& op) {
    if (target_type(renamed(op.operands.front())).elements() != 0) return false;
    Op made;
    made.name = "stablehlo.broadcast_in_dim";
    made.line = op.line;
    made.operands = {renamed(op.operands.back())};
    made.attributes = {{"dims", integers_attribute({})}};
    replace(op.results.front(), create(std::move(made), source().type_of(op.results.front())));
    return true;
  }

  // Without what has no elements.
  bool rewrite_concatenate(const Op& op) {
    std::vector<ValueId> pieces = renamed(op.operands);
    std::erase_if(pieces, [&](ValueId piece) { return target_type(piece).elements() == 0; });
    if (pieces.empty() || pieces.size() == op.operands.size()) return false;
    const auto dim = at(OpView(module_, source(), op).integer({"dim", "dimension"}, 0));
    replace(op.results.front(), concatenated(op, pieces, dim));
    return true;
  }

  // Of the pieces that it needs. Where others read the concatenation too, only if that is one
  // piece.
  bool rewrite_slice(const Op& op) {
    const Op* joined = target_definition(renamed(op.operands.front()));
    if (joined == nullptr || joined->name != "stablehlo.concatenate") return false;
    const OpView slice(module_, source(), op);
    Shape starts = slice.integers({"start_indices"});
    Shape limits = slice.integers({"limit_indices"});
    const auto dim = at(OpView(module_, target(), *joined).integer({"dim", "dimension"}, 0));
    std::vector<ValueId> needed;
    std::int64_t offset = 0;  // of the first that is needed
    std::int64_t end = 0;
    for (const ValueId piece : joined->operands) {
      const std::int64_t start = end;
      end += target_type(piece).dims[dim];
      if (end <= starts[dim] || start >= limits[dim]) continue;
      if (needed.empty()) offset = start;
      needed.push_back(piece);
    }
    if (needed.empty() || needed.size() == joined->operands.size()) return false;
    if (needed.size() > 1 && readers_[at(op.operands.front())] != 1) return false;
    starts[dim] -= offset;
    limits[dim] -= offset;
    replace(op.results.front(), sliced(op, concatenated(*joined, needed, dim), starts, limits));
    return true;
  }

  ValueId concatenated(const Op& joined, const std::vector<ValueId>& pieces, std::size_t dim) {
    if (pieces.size() == 1) return pieces.front();
    TensorType type = target_type(pieces.front());
    type.dims[dim] = 0;
    for (const ValueId piece : pieces) type.dims[dim] += target_type(piece).dims[dim];
    Op made;
    made.name = joined.name;
    made.line = joined.line;
    made.operands = pieces;
    made.attributes = joined.attributes;
    return create(std::move(made), std::move(type));
  }

  ValueId sliced(const Op& op, ValueId operand, const Shape& starts, const Shape& limits) {
    const TensorType& type = source().type_of(op.results.front());
    if (target_type(operand) == type) return operand;
    Op made;
    made.name = op.name;
    made.line = op.line;
    made.operands = {operand};
    made.attributes = {
        {"start_indices", integers_attribute(starts)},
        {"limit_indices", integers_attribute(limits)},
        {"strides", integers_attribute(OpView(module_, source(), op).integers({"strides"}))}};
    return create(std::move(made), type);
  }

  const stablehlo::Module& module_;
  std::vector<int> readers_;  // by value of the source
};

}  // namespace

Function simplify_moves(const stablehlo::Module& module, const Function& function) {
  return MoveSimplifier(module, function).run(function);
}

}  // namespace shardsim::spmd
