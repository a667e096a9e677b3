#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "base/index.hpp"
#include "spmd/propagation/constants.hpp"
#include "spmd/propagation/fold_constants.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/propagation/function_rewriter.hpp"
#include "spmd/propagation/op_kinds.hpp"
#include "spmd/propagation/prepare_passes.hpp"
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
  Canonicalizer(const stablehlo::Module& module, const Function& function)
      : module_(module), readers_(reader_counts(function)) {}

 private:
  using Rewrite = bool (Canonicalizer::*)(const Op&);

  bool rewrite(const Op& op) override {
    static const std::unordered_map<std::string_view, Rewrite> table{
        {"chlo.square", &Canonicalizer::rewrite_square},
        {"stablehlo.broadcast_in_dim", &Canonicalizer::rewrite_broadcast},
        {"stablehlo.compare", &Canonicalizer::rewrite_compare},
        {"stablehlo.concatenate", &Canonicalizer::rewrite_concatenate},
        {"stablehlo.convert", &Canonicalizer::rewrite_convert},
        {"stablehlo.dynamic_slice", &Canonicalizer::rewrite_dynamic_slice},
        {"stablehlo.dynamic_update_slice", &Canonicalizer::rewrite_dynamic_update_slice},
        {"stablehlo.iota", &Canonicalizer::rewrite_iota},
        {"stablehlo.reshape", &Canonicalizer::rewrite_reshape},
        {"stablehlo.select", &Canonicalizer::rewrite_select},
        {"stablehlo.slice", &Canonicalizer::rewrite_slice},
        {"stablehlo.subtract", &Canonicalizer::rewrite_subtract},
        {"stablehlo.transpose", &Canonicalizer::rewrite_transpose},
    };
    if (is_empty(op)) return use_constant(op, "");
    if (fold_constant(op)) return true;
    if (is_commutative(op.name)) return rewrite_commutative(op);
    const auto found = table.find(op.name);
    return found != table.end() && (this->*found->second)(op);
  }

  [[nodiscard]] std::vector<std::int64_t> integers(
      const Op& op, std::initializer_list<std::string_view> names) const {
    return stablehlo::OpView(module_, source(), op).integers_or_none(names);
  }

  // The number that all elements of a value are, where it is a constant.
  [[nodiscard]] std::optional<double> number(ValueId value) const {
    const Op* definition = target_definition(value);
    return definition == nullptr ? std::nullopt
                                 : splat_number(*definition, target_type(value).element);
  }
  [[nodiscard]] std::optional<std::string> splat(ValueId value) const {
    const Op* definition = target_definition(value);
    return definition == nullptr ? std::nullopt : splat_text(*definition);
  }
  [[nodiscard]] bool is_constant_value(ValueId value) const {
    const Op* definition = target_definition(value);
    return definition != nullptr && is_constant(*definition);
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
  // A constant stays one when its elements only move.
  bool use_splat_of(const Op& op, ValueId operand) {
    const std::optional<std::string> text = splat(operand);
    return text && use_constant(op, *text);
  }
  // One reshape for two.
  bool use_reshape(const Op& op, ValueId operand) {
    const Op* before = target_definition(operand);
    if (before != nullptr && before->name == "stablehlo.reshape") {
      operand = before->operands.front();
    }
    if (target_type(operand) == result_type(op)) return use_instead(op, operand);
    Op reshape;
    reshape.name = "stablehlo.reshape";
    reshape.line = op.line;
    reshape.operands = {operand};
    return use_instead(op, create(std::move(reshape), result_type(op)));
  }
  bool copy_with(const Op& op, std::vector<ValueId> operands) {
    const stablehlo::OpId made = copy(op);
    target().ops[at(made)].operands = std::move(operands);
    return true;
  }

  // A tensor without elements is a constant, whatever made it.
  [[nodiscard]] bool is_empty(const Op& op) const {
    return op.results.size() == 1 && is_pure(op) && !is_constant(op) && result_type(op).is_tensor &&
           result_type(op).elements() == 0;
  }

  bool fold_constant(const Op& op) {
    if (op.operands.empty() || op.operands.size() > 2 || op.results.size() != 1) return false;
    std::vector<double> numbers;
    for (const ValueId operand : op.operands) {
      const std::optional<double> known = number(renamed(operand));
      if (!known) return false;
      numbers.push_back(*known);
    }
    std::optional<std::string> text = fold(op, numbers, result_type(op));
    return text && use_constant(op, std::move(*text));
  }

  // Constants to the right; x + 0 and x * 1 are x, and so on.
  bool rewrite_commutative(const Op& op) {
    std::vector<ValueId> operands = renamed(op.operands);
    if (operands.size() != 2) return false;
    if (is_constant_value(operands[0]) && !is_constant_value(operands[1])) {
      std::swap(operands[0], operands[1]);
    }
    const std::optional<double> right = number(operands[1]);
    const bool is_bit = result_type(op).element == "i1";
    const bool is_integer =
        !result_type(op).element.empty() &&
        (result_type(op).element[0] == 'i' || result_type(op).element[0] == 'u');
    const bool zero = right == 0.0;
    const bool one = right == 1.0;
    const std::string_view name = std::string_view{op.name}.substr(10);
    const bool keeps = (name == "add" && zero) || (name == "multiply" && one) ||
                       ((name == "or" || name == "xor") && zero) ||
                       (name == "and" && one && is_bit);
    if (keeps) return use_instead(op, operands[0]);
    const bool fixes = (name == "multiply" && zero && is_integer) || (name == "and" && zero) ||
                       (name == "or" && one && is_bit);
    if (fixes) return use_instead(op, operands[1]);
    return copy_with(op, std::move(operands));
  }

  bool rewrite_square(const Op& op) {
    Op multiply;
    multiply.name = "stablehlo.multiply";
    multiply.line = op.line;
    multiply.operands = {renamed(op.operands.front()), renamed(op.operands.front())};
    return use_instead(op, create(std::move(multiply), result_type(op)));
  }

  bool rewrite_broadcast(const Op& op) {
    return broadcast(op, renamed(op.operands.front()),
                     integers(op, {"dims", "broadcast_dimensions"}));
  }

  // As nothing at all, a constant, a reshape, a transpose, or one broadcast for two.
  bool broadcast(const Op& op, ValueId operand, std::vector<std::int64_t> dims) {
    if (use_splat_of(op, operand)) return true;
    const TensorType& to = result_type(op);
    const bool sorted = std::is_sorted(dims.begin(), dims.end());
    if (target_type(operand) == to && sorted) return use_instead(op, operand);
    const Op* inner = target_definition(operand);
    if (inner != nullptr && inner->name == "stablehlo.broadcast_in_dim") {
      const std::vector<std::int64_t> before = target_integers(*inner, "dims");
      std::vector<std::int64_t> merged;
      for (const std::int64_t dim : before) merged.push_back(dims[at(dim)]);
      return broadcast(op, inner->operands.front(), std::move(merged));
    }
    if (target_type(operand).elements() == to.elements() && sorted) {
      return use_reshape(op, operand);
    }
    if (target_type(operand).elements() == to.elements() && to.rank() == dims.size()) {
      Op transpose;
      transpose.name = "stablehlo.transpose";
      transpose.line = op.line;
      transpose.operands = {operand};
      std::vector<std::int64_t> permutation(dims.size());
      std::int64_t place = 0;
      for (const std::int64_t dim : dims) permutation[at(dim)] = place++;
      transpose.attributes.push_back(integers_attribute("dims", permutation));
      return use_instead(op, create(std::move(transpose), to));
    }
    Op made;
    made.name = "stablehlo.broadcast_in_dim";
    made.line = op.line;
    made.operands = {operand};
    made.attributes.push_back(integers_attribute("dims", dims));
    return use_instead(op, create(std::move(made), to));
  }

  [[nodiscard]] std::vector<std::int64_t> target_integers(const Op& op,
                                                          std::string_view name) const {
    const stablehlo::Attribute* attribute = find(op.attributes, name);
    return attribute == nullptr ? std::vector<std::int64_t>{}
                                : stablehlo::integers_of(*attribute, module_.file, op.line);
  }

  // Over several dimensions: a line, broadcast.
  bool rewrite_iota(const Op& op) {
    const std::vector<std::int64_t> dim = integers(op, {"dim", "iota_dimension"});
    const TensorType& type = result_type(op);
    if (dim.size() != 1 || static_cast<std::size_t>(dim[0]) >= type.rank()) return false;
    const std::int64_t size = type.dims[at(dim[0])];
    if (size == 1) return use_constant(op, type.element[0] == 'f' ? "0.000000e+00" : "0");
    if (type.rank() == 1) return false;
    Op line;
    line.name = op.name;
    line.line = op.line;
    stablehlo::Attribute zero;
    zero.kind = stablehlo::Attribute::Kind::integer;
    zero.text = "0";
    line.attributes.push_back({"dim", std::move(zero)});
    TensorType line_type = type;
    line_type.dims = {size};
    return broadcast(op, create(std::move(line), std::move(line_type)), dim);
  }

  bool rewrite_reshape(const Op& op) {
    const ValueId operand = renamed(op.operands.front());
    return use_splat_of(op, operand) || use_reshape(op, operand);
  }

  bool rewrite_transpose(const Op& op) {
    ValueId operand = renamed(op.operands.front());
    if (use_splat_of(op, operand)) return true;
    std::vector<std::int64_t> dims = integers(op, {"dims", "permutation"});
    const Op* inner = target_definition(operand);
    const bool twice = inner != nullptr && inner->name == "stablehlo.transpose";
    if (twice) {
      const std::vector<std::int64_t> before = target_integers(*inner, "dims");
      for (std::int64_t& dim : dims) dim = before[at(dim)];
      operand = inner->operands.front();
    }
    if (std::is_sorted(dims.begin(), dims.end())) return use_instead(op, operand);
    std::vector<std::int64_t> moved;  // dimensions of size 1 can move freely
    for (const std::int64_t dim : dims) {
      if (target_type(operand).dims[at(dim)] != 1) moved.push_back(dim);
    }
    if (std::is_sorted(moved.begin(), moved.end())) return use_reshape(op, operand);
    if (!twice) return false;
    Op transpose;
    transpose.name = op.name;
    transpose.line = op.line;
    transpose.operands = {operand};
    transpose.attributes.push_back(integers_attribute("dims", dims));
    return use_instead(op, create(std::move(transpose), result_type(op)));
  }

  bool rewrite_convert(const Op& op) {
    const ValueId operand = renamed(op.operands.front());
    return target_type(operand) == result_type(op) && use_instead(op, operand);
  }

  bool rewrite_subtract(const Op& op) {
    const std::vector<ValueId> operands = renamed(op.operands);
    if (number(operands[1]) == 0.0) return use_instead(op, operands[0]);
    const bool integer = result_type(op).element[0] == 'i' || result_type(op).element[0] == 'u';
    return operands[0] == operands[1] && integer && use_constant(op, "0");
  }

  // Of integers, with the constant on the right. Truth compared with truth is itself.
  bool rewrite_compare(const Op& op) {
    const stablehlo::Attribute* words = find(op.attributes, "words");
    if (words == nullptr || words->items.size() < 2) return false;
    const std::vector<ValueId> operands = renamed(op.operands);
    const std::string& kind = words->items[1].text;
    const std::string& direction = words->items[0].text;
    if (target_type(operands[0]).element == "i1") {
      const std::optional<double> right = number(operands[1]);
      if ((direction == "NE" && right == 0.0) || (direction == "EQ" && right == 1.0)) {
        return use_instead(op, operands[0]);
      }
    }
    if (kind != "SIGNED" && kind != "UNSIGNED") return false;
    if (operands[0] == operands[1]) {
      const bool holds = direction == "EQ" || direction == "GE" || direction == "LE";
      return use_constant(op, holds ? "true" : "false");
    }
    if (!is_constant_value(operands[0]) || is_constant_value(operands[1])) return false;
    const stablehlo::OpId made = copy(op);
    Op& swapped = target().ops[at(made)];
    swapped.operands = {operands[1], operands[0]};
    for (stablehlo::NamedAttribute& attribute : swapped.attributes) {
      if (attribute.name != "words") continue;
      std::string& word = attribute.value.items.front().text;
      if (word == "LT" || word == "GT") {
        word = word == "LT" ? "GT" : "LT";
      } else if (word == "LE" || word == "GE") {
        word = word == "LE" ? "GE" : "LE";
      }
    }
    return true;
  }

  bool rewrite_select(const Op& op) {
    const std::vector<ValueId> operands = renamed(op.operands);
    if (operands[1] == operands[2]) return use_instead(op, operands[1]);
    if (const std::optional<double> known = number(operands[0])) {
      return use_instead(op, *known != 0 ? operands[1] : operands[2]);
    }
    const Op* predicate = target_definition(operands[0]);
    if (predicate == nullptr || predicate->name != "stablehlo.not") return false;
    return copy_with(op, {predicate->operands.front(), operands[2], operands[1]});
  }

  bool rewrite_slice(const Op& op) {
    const ValueId operand = renamed(op.operands.front());
    if (use_splat_of(op, operand)) return true;
    return target_type(operand) == result_type(op) && use_instead(op, operand);
  }

  bool rewrite_concatenate(const Op& op) {
    std::vector<ValueId> operands;
    const std::vector<std::int64_t> dim = integers(op, {"dim", "dimension"});
    for (const ValueId old : op.operands) {
      const Op* inner = target_definition(renamed(old));
      if (inner != nullptr && inner->name == op.name && readers_[at(old)] == 1 &&
          target_integers(*inner, "dim") == dim) {
        operands.insert(operands.end(), inner->operands.begin(), inner->operands.end());
      } else {
        operands.push_back(renamed(old));
      }
    }
    if (operands.size() == 1) return use_instead(op, operands[0]);
    return copy_with(op, std::move(operands));
  }

  // At a place that is known: a slice.
  bool rewrite_dynamic_slice(const Op& op) {
    const TensorType from = target_type(renamed(op.operands.front()));
    const std::vector<std::int64_t>& sizes = result_type(op).dims;
    std::vector<std::int64_t> starts;
    std::vector<std::int64_t> limits;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const std::optional<double> start = number(renamed(op.operands[d + 1]));
      if (!start) return false;
      starts.push_back(
          std::clamp(static_cast<std::int64_t>(*start), std::int64_t{0}, from.dims[d] - sizes[d]));
      limits.push_back(starts.back() + sizes[d]);
    }
    if (sizes == from.dims) return use_instead(op, renamed(op.operands.front()));
    Op slice;
    slice.name = "stablehlo.slice";
    slice.line = op.line;
    slice.operands = {renamed(op.operands.front())};
    slice.attributes.push_back(integers_attribute("start_indices", starts));
    slice.attributes.push_back(integers_attribute("limit_indices", limits));
    slice.attributes.push_back(
        integers_attribute("strides", std::vector<std::int64_t>(starts.size(), 1)));
    return use_instead(op, create(std::move(slice), result_type(op)));
  }

  bool rewrite_dynamic_update_slice(const Op& op) {
    const std::vector<ValueId> operands = renamed(op.operands);
    if (target_type(operands[0]) != target_type(operands[1])) return false;
    for (std::size_t i = 2; i < operands.size(); ++i) {
      if (number(operands[i]) != 0.0) return false;
    }
    return use_instead(op, operands[1]);
  }

  const stablehlo::Module& module_;
  std::vector<int> readers_;  // by value of the source
};

}  // namespace

Function canonicalize(const stablehlo::Module& module, const Function& function) {
  return Canonicalizer(module, function).run(function);
}

}  // namespace shardsim::spmd
