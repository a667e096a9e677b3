#include "strategies/rules/flax_nnx.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

LogicalAxisRule* find_rule(LogicalAxisRules& rules, const std::string& name) {
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](const LogicalAxisRule& rule) { return rule.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace

LogicalAssignment from_sharding_rules(const PartitionSpec& names, const LogicalAxisRules& rules) {
  LogicalAssignment result{names, {}, ""};
  result.rules.resize(names.size());
  for (std::size_t d = 0; d < names.size(); ++d) {
    if (names[d].axes.size() != 1 || names[d].axes[0].empty()) continue;
    for (std::size_t r = 0; r < rules.size(); ++r) {
      if (rules[r].name == names[d].axes[0]) result.rules[d] = r;
    }
    if (result.rules[d]) result.spec[d] = rules[*result.rules[d]].axes;
  }
  return result;
}

LogicalAxisRules composite_rules(const LogicalAxisRules& rules, const LogicalAxisRules& more) {
  if (rules.empty()) return more;
  if (more.empty()) return rules;
  LogicalAxisRules result;
  for (const LogicalAxisRule& rule : rules) {
    if (LogicalAxisRule* known = find_rule(result, rule.name)) {
      *known = rule;
    } else {
      result.push_back(rule);
    }
  }
  for (const LogicalAxisRule& rule : more) {
    const LogicalAxisRule* known = find_rule(result, rule.name);
    if (known == nullptr) {
      result.push_back(rule);
    } else if (known->axes != rule.axes) {
      throw RuleError(
          "ValueError", rule.place,
          fmt::format("rule \"{}\" contradicts rule \"{}\"", to_string(rule), to_string(*known)));
    }
  }
  return result;
}

SpecAssignment assign_flax_nnx(const ParameterTree& tree, const Mesh& /*mesh*/,
                               const JsonReader& strategy) {
  LogicalAxisRules rules = read_logical_axis_rules(strategy.at("rules"));
  if (const auto context = strategy.find("context_rules")) {
    rules = composite_rules(read_logical_axis_rules(*context), rules);
  }
  return assign_by_logical_rules(tree, rules,
                                 [&](const PartitionSpec& names, const ParameterLeaf&) {
                                   return from_sharding_rules(names, rules);
                                 });
}

}  // namespace shardsim
