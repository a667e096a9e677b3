// The factor rule of every op that Shardy has one for, derived from its types and attributes.
//
//   Module module = read_module("step.mlir");
//   OpRule rule = factor_rule(module, function, op);
//   rule.rule ? text_of(*rule.rule) : rule.known ? "has none" : "unknown op"
//
// Constants, loops, branches, calls and the like have no rule: shardings pass through them in other
// ways (between the arguments of a loop and its regions, say). An op whose user gave it a rule
// (sdy.sharding_rule = #sdy.op_sharding_rule<..., custom>) has that one.
// A new op is one row of the table in op_rules.cpp and, where its rule is of no known shape, one
// function in a rules_*.cpp.
//
// Facts from openxla/shardy shardy/dialect/sdy/transforms/propagation (op_sharding_rule_registry.cc
// and its test), and from XLA's own output (tests/golden/xla/propagated).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "stablehlo/factor_rule.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {

struct OpRule {
  std::optional<FactorRule> rule;
  bool known = true;  // false: neither a rule nor a reason to have none
};

// Throws InputError where operands are missing or too many (operand_counts.hpp), and where types
// and attributes of the op contradict each other.
[[nodiscard]] OpRule factor_rule(const Module& module, const Function& function, const Op& op);

// By name alone: one result element per element of the operands. So are collectives that keep the
// shape, as far as factors go.
[[nodiscard]] bool is_elementwise(std::string_view op_name);

// Ops that have no known rule, by name ("stablehlo.custom_call @Foo"), with how many there are.
[[nodiscard]] std::map<std::string, int> unknown_ops(const Module& module);

}  // namespace shardsim::stablehlo
