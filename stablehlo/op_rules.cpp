#include "stablehlo/op_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "stablehlo/operand_counts.hpp"
#include "stablehlo/rules.hpp"

namespace shardsim::stablehlo {
namespace {

// Without the dialect: chlo's ops of the same name mean the same.
constexpr auto elementwise_ops = std::to_array<std::string_view>({"abs",
                                                                  "acos",
                                                                  "acosh",
                                                                  "add",
                                                                  "all_reduce",
                                                                  "and",
                                                                  "asin",
                                                                  "asinh",
                                                                  "atan",
                                                                  "atan2",
                                                                  "atanh",
                                                                  "bessel_i1e",
                                                                  "cbrt",
                                                                  "ceil",
                                                                  "collective_broadcast",
                                                                  "collective_permute",
                                                                  "compare",
                                                                  "complex",
                                                                  "conj",
                                                                  "convert",
                                                                  "copy",
                                                                  "cosh",
                                                                  "cosine",
                                                                  "count_leading_zeros",
                                                                  "cross-replica-sum",
                                                                  "digamma",
                                                                  "divide",
                                                                  "erf",
                                                                  "erf_inv",
                                                                  "erfc",
                                                                  "exponential",
                                                                  "exponential_minus_one",
                                                                  "floor",
                                                                  "imag",
                                                                  "is_finite",
                                                                  "is_inf",
                                                                  "is_neg_inf",
                                                                  "is_pos_inf",
                                                                  "lgamma",
                                                                  "log",
                                                                  "log_plus_one",
                                                                  "logistic",
                                                                  "maximum",
                                                                  "minimum",
                                                                  "multiply",
                                                                  "negate",
                                                                  "next_after",
                                                                  "not",
                                                                  "or",
                                                                  "polygamma",
                                                                  "popcnt",
                                                                  "power",
                                                                  "real",
                                                                  "reduce_precision",
                                                                  "remainder",
                                                                  "round_nearest_afz",
                                                                  "round_nearest_even",
                                                                  "rsqrt",
                                                                  "select",
                                                                  "shift_left",
                                                                  "shift_right_arithmetic",
                                                                  "shift_right_logical",
                                                                  "sign",
                                                                  "sine",
                                                                  "sinh",
                                                                  "sqrt",
                                                                  "square",
                                                                  "subtract",
                                                                  "tan",
                                                                  "tanh",
                                                                  "xor",
                                                                  "zeta"});
static_assert(std::is_sorted(elementwise_ops.begin(), elementwise_ops.end()));

const std::unordered_map<std::string_view, RuleFunction>& rules() {
  static const std::unordered_map<std::string_view, RuleFunction> table{
      {"chlo.top_k", top_k_rule},
      {"mhlo.topk", top_k_rule},
      {"sdy.reshard", elementwise_rule},
      {"sdy.sharding_constraint", elementwise_rule},
      {"stablehlo.all_gather", resizing_collective_rule},
      {"stablehlo.all_to_all", resizing_collective_rule},
      {"stablehlo.bitcast_convert", bitcast_rule},
      {"stablehlo.broadcast_in_dim", broadcast_rule},
      {"stablehlo.cholesky", cholesky_rule},
      {"stablehlo.clamp", clamp_rule},
      {"stablehlo.concatenate", concatenate_rule},
      {"stablehlo.convolution", convolution_rule},
      {"stablehlo.dot", dot_rule},
      {"stablehlo.dot_general", dot_general_rule},
      {"stablehlo.dynamic_slice", dynamic_slice_rule},
      {"stablehlo.dynamic_update_slice", dynamic_update_slice_rule},
      {"stablehlo.fft", fft_rule},
      {"stablehlo.gather", gather_rule},
      {"stablehlo.pad", pad_rule},
      {"stablehlo.reduce", reduce_rule},
      {"stablehlo.reduce_scatter", resizing_collective_rule},
      {"stablehlo.reduce_window", reduce_window_rule},
      {"stablehlo.reshape", reshape_rule},
      {"stablehlo.reverse", reverse_rule},
      {"stablehlo.rng_bit_generator", rng_bit_generator_rule},
      {"stablehlo.scatter", scatter_rule},
      {"stablehlo.select_and_scatter", select_and_scatter_rule},
      {"stablehlo.slice", slice_rule},
      {"stablehlo.sort", sort_rule},
      {"stablehlo.transpose", transpose_rule},
      {"stablehlo.triangular_solve", triangular_solve_rule},
  };
  return table;
}

// Ops that Shardy treats in other ways, or that nothing travels through.
constexpr auto ops_without_rule = std::to_array<std::string_view>({"chlo.constant",
                                                                   "func.call",
                                                                   "func.return",
                                                                   "sdy.all_gather",
                                                                   "sdy.all_reduce",
                                                                   "sdy.all_slice",
                                                                   "sdy.all_to_all",
                                                                   "sdy.collective_permute",
                                                                   "sdy.constant",
                                                                   "sdy.data_flow_edge",
                                                                   "sdy.manual_computation",
                                                                   "sdy.named_computation",
                                                                   "sdy.propagation_barrier",
                                                                   "sdy.reduce_scatter",
                                                                   "sdy.return",
                                                                   "sdy.sharding_group",
                                                                   "stablehlo.after_all",
                                                                   "stablehlo.case",
                                                                   "stablehlo.constant",
                                                                   "stablehlo.create_token",
                                                                   "stablehlo.get_tuple_element",
                                                                   "stablehlo.if",
                                                                   "stablehlo.infeed",
                                                                   "stablehlo.iota",
                                                                   "stablehlo.optimization_barrier",
                                                                   "stablehlo.outfeed",
                                                                   "stablehlo.partition_id",
                                                                   "stablehlo.recv",
                                                                   "stablehlo.replica_id",
                                                                   "stablehlo.return",
                                                                   "stablehlo.rng",
                                                                   "stablehlo.send",
                                                                   "stablehlo.tuple",
                                                                   "stablehlo.while"});
static_assert(std::is_sorted(ops_without_rule.begin(), ops_without_rule.end()));

// What follows from the op itself.
OpRule own_rule(const OpView& op) {
  const std::string_view name = op.op().name;
  if (name == "stablehlo.custom_call") {
    bool known = true;
    std::optional<FactorRule> rule = custom_call_rule(op, known);
    return {std::move(rule), known};
  }
  if (const auto found = rules().find(name); found != rules().end()) {
    return {found->second(op), true};
  }
  if (is_elementwise(name)) return {elementwise_rule(op), true};
  const bool known = std::binary_search(ops_without_rule.begin(), ops_without_rule.end(), name);
  return {std::nullopt, known};
}

// That of the attribute sdy.sharding_rule, where it is there and not a copy of the op's own.
std::optional<FactorRule> custom_rule(const OpView& op) {
  const Attribute* given = op.attribute({"sdy.sharding_rule"});
  if (given == nullptr) return std::nullopt;
  Scanner body(given->text, op.module().file, op.op().line);
  FactorRule rule = parse_factor_rule(body);
  if (!rule.custom) return std::nullopt;
  if (rule.operands.size() != op.op().operands.size() ||
      rule.results.size() != op.op().results.size()) {
    op.fail("its sharding rule is for other operands and results");
  }
  for (std::size_t i = 0; i < rule.operands.size(); ++i) {
    if (rule.operands[i].size() != op.operand(i).size()) op.fail("sharding rule of another rank");
  }
  for (std::size_t i = 0; i < rule.results.size(); ++i) {
    if (rule.results[i].size() != op.result(i).size()) op.fail("sharding rule of another rank");
  }
  return rule;
}

}  // namespace

bool is_elementwise(std::string_view op_name) {
  const std::size_t dot = op_name.find('.');
  const std::string_view dialect = op_name.substr(0, dot);
  return (dialect == "stablehlo" || dialect == "chlo" || dialect == "mhlo") &&
         std::binary_search(elementwise_ops.begin(), elementwise_ops.end(),
                            op_name.substr(dot + 1));
}

OpRule factor_rule(const Module& module, const Function& function, const Op& op) {
  const OpView view(module, function, op);
  check_operand_counts(view);
  OpRule own = own_rule(view);  // its checks hold where another rule is given, too
  if (std::optional<FactorRule> given = custom_rule(view)) return {std::move(given), true};
  return own;
}

std::map<std::string, int> unknown_ops(const Module& module) {
  std::map<std::string, int> counts;
  for (const Function& function : module.functions) {
    for (const Op& op : function.ops) {
      if (factor_rule(module, function, op).known) continue;
      const Attribute* target = find(op.attributes, "callee");
      ++counts[target == nullptr ? op.name : fmt::format("{} @{}", op.name, target->text)];
    }
  }
  return counts;
}

}  // namespace shardsim::stablehlo
