#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "spmd/constants.hpp"
#include "spmd/function_rewriter.hpp"
#include "spmd/op_kinds.hpp"
#include "spmd/prepare_passes.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::Op;
using stablehlo::TensorType;
using stablehlo::ValueId;

namespace {

bool is_commutative(std::string_view name) {
  constexpr auto names = std::to_array<std::string_view>(
      {"stablehlo.add", "stablehlo.and", "stablehlo.maximum", "stablehlo.minimum",
       "stablehlo.multiply", "stablehlo.or", "stablehlo.xor"});
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Canonicalizer : public FunctionRewriter {
 public:
  explicit Canonicalizer(const stablehlo::Module& module) : module_(module) {}

 private:
  bool rewrite(const Op& op) override {
    if (is_commutative(op.name)) return rewrite_commutative(op);
    if (op.name == "stablehlo.broadcast_in_dim") return rewrite_broadcast(op);
    if (op.name == "stablehlo.reshape") return rewrite_reshape(op);
    if (op.name == "stablehlo.transpose") return rewrite_transpose(op);
    if (op.name == "stablehlo.convert") return rewrite_convert(op);
    return false;
  }

  [[nodiscard]] const TensorType& result_type(const Op& op) const {
    return source().type_of(op.results.front());
  }

  // The number that all elements of a value are, where it is a constant.
  [[nodiscard]] std::optional<double> number(ValueId value) const {
    const Op* definition = target_definition(value);
    return definition == nullptr ? std::nullopt : splat_number(*definition);
  }

  [[nodiscard]] std::optional<std::string> splat(ValueId value) const {
    const Op* definition = target_definition(value);
    return definition == nullptr ? std::nullopt : splat_text(*definition);
  }

  bool use_instead(const Op& op, ValueId value) {
    replace(op.results.front(), value);
    return true;
  }

  bool use_constant(const Op& op, std::string text) {
    Op constant = constant_op(std::move(text));
    constant.line = op.line;
    return use_instead(op, create(std::move(constant), result_type(op)));
  }

  [[nodiscard]] bool is_constant_value(ValueId value) const {
    const Op* definition = target_definition(value);
    return definition != nullptr && is_constant(*definition);
  }

  // Constants to the right; x + 0 and x * 1 are x.
  bool rewrite_commutative(const Op& op) {
    std::vector<ValueId> operands = renamed(op.operands);
    if (operands.size() != 2) return false;
    if (is_constant_value(operands[0]) && !is_constant_value(operands[1])) {
      std::swap(operands[0], operands[1]);
    }
    const std::optional<double> right = number(operands[1]);
    if (right == 0.0 && op.name == "stablehlo.add") return use_instead(op, operands[0]);
    if (right == 1.0 && op.name == "stablehlo.multiply") return use_instead(op, operands[0]);
    const stablehlo::OpId made = copy(op);
    target().ops[static_cast<std::size_t>(made)].operands = std::move(operands);
    return true;
  }

  bool rewrite_broadcast(const Op& op) {
    const ValueId operand = renamed(op.operands.front());
    if (const std::optional<std::string> text = splat(operand)) return use_constant(op, *text);
    const TensorType& from = target_type(operand);
    const TensorType& to = result_type(op);
    const std::vector<std::int64_t> dims =
        stablehlo::OpView(module_, source(), op)
            .integers_or_none({"dims", "broadcast_dimensions"});
    if (from == to && std::is_sorted(dims.begin(), dims.end())) return use_instead(op, operand);
    if (from.elements() != to.elements() || !std::is_sorted(dims.begin(), dims.end()) ||
        is_scalar(from)) {
      return false;
    }
    Op reshape;
    reshape.name = "stablehlo.reshape";
    reshape.line = op.line;
    reshape.operands = {operand};
    return use_instead(op, create(std::move(reshape), to));
  }

  bool rewrite_reshape(const Op& op) {
    ValueId operand = renamed(op.operands.front());
    if (const std::optional<std::string> text = splat(operand)) return use_constant(op, *text);
    const Op* definition = target_definition(operand);
    while (definition != nullptr && definition->name == "stablehlo.reshape") {
      operand = definition->operands.front();
      definition = target_definition(operand);
    }
    if (target_type(operand) == result_type(op)) return use_instead(op, operand);
    const stablehlo::OpId made = copy(op);
    target().ops[static_cast<std::size_t>(made)].operands = {operand};
    return true;
  }

  bool rewrite_transpose(const Op& op) {
    const ValueId operand = renamed(op.operands.front());
    if (const std::optional<std::string> text = splat(operand)) return use_constant(op, *text);
    const std::vector<std::int64_t> dims = stablehlo::OpView(module_, source(), op)
                                               .integers_or_none({"dims", "permutation"});
    if (!std::is_sorted(dims.begin(), dims.end())) return false;
    return use_instead(op, operand);
  }

  bool rewrite_convert(const Op& op) {
    const ValueId operand = renamed(op.operands.front());
    if (target_type(operand) == result_type(op)) return use_instead(op, operand);
    return false;
  }

  const stablehlo::Module& module_;
};

}  // namespace

Function canonicalize(const stablehlo::Module& module, const Function& function) {
  return Canonicalizer(module).run(function);
}

}  // namespace shardsim::spmd
