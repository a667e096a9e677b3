#include "strategies/rules/logical_axes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

std::string entry_text(const SpecEntry& entry) {
  const std::string spec = to_string(PartitionSpec{entry});  // "P(entry)"
  return spec.substr(2, spec.size() - 3);
}

bool is_name(const SpecEntry& entry) { return entry.axes.size() == 1; }

// The dimension that holds the first of `axes` that is held at all, and that axis.
struct Holder {
  std::string axis;
  std::size_t dimension = 0;
};

// Logical names are no mesh axes: only what `assigned` holds counts.
std::optional<Holder> holder_of(const std::vector<std::string>& axes,
                                const std::vector<std::optional<SpecEntry>>& assigned) {
  for (const std::string& axis : axes) {
    for (std::size_t d = 0; d < assigned.size(); ++d) {
      if (!assigned[d]) continue;
      const std::vector<std::string>& held = assigned[d]->axes;
      if (std::find(held.begin(), held.end(), axis) != held.end()) return Holder{axis, d};
    }
  }
  return std::nullopt;
}

void check_names(const PartitionSpec& names, const Place& place) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (is_name(*name) && std::find(names.begin(), name, *name) != name) {
      throw RuleError("ValueError", place,
                      fmt::format("two dimensions have the logical name \"{}\"", name->axes[0]));
    }
  }
}

// Enters a leaf into the uses of the rules, and the rule into the leaf.
void count_rules(const LogicalAssignment& assignment, const LogicalAxisRules& rules,
                 const LogicalAxes& names, LeafSpec& leaf, std::vector<RuleUse>& uses) {
  for (std::size_t r = 0; r < rules.size(); ++r) {
    if (std::find(names.begin(), names.end(), rules[r].name) != names.end()) ++uses[r].matches;
  }
  leaf.dimension_rules = assignment.rules;
  std::vector<std::size_t> deciding;
  for (const RuleIndex& rule : assignment.rules) {
    if (rule) deciding.push_back(*rule);
  }
  if (deciding.empty()) return;
  std::sort(deciding.begin(), deciding.end());
  deciding.erase(std::unique(deciding.begin(), deciding.end()), deciding.end());
  for (const std::size_t rule : deciding) ++uses[rule].decides;
  const auto sharding = std::find_if(deciding.begin(), deciding.end(), [&](std::size_t rule) {
    return !rules[rule].axes.is_whole();
  });
  leaf.rule = sharding == deciding.end() ? deciding.front() : *sharding;
}

}  // namespace

LogicalAxisRules read_logical_axis_rules(const JsonReader& json) {
  if (!json.is_array()) {
    throw RuleError("ValueError", json.place(), "logical axis rules are a list of pairs");
  }
  LogicalAxisRules rules;
  for (const JsonReader& rule : json.elements()) {
    if (!rule.is_array() || rule.elements().size() != 2) {
      throw RuleError("ValueError", rule.place(),
                      "a logical axis rule is a pair [logical name, mesh axes or null]");
    }
    const std::vector<JsonReader> pair = rule.elements();
    rules.push_back({pair[0].string(), read_spec_entry(pair[1]), rule.place()});
  }
  return rules;
}

std::optional<std::vector<std::string>> axes_of_rule(const LogicalAxisRules& rules,
                                                     std::string_view name) {
  for (const LogicalAxisRule& rule : rules) {
    if (rule.name == name) return rule.axes.axes;
  }
  return std::nullopt;
}

std::string to_string(const LogicalAxisRule& rule) {
  return fmt::format("{} -> {}", rule.name, entry_text(rule.axes));
}

LogicalAssignment apply_logical_axis_rules(const PartitionSpec& names,
                                           const LogicalAxisRules& rules, const Place& place) {
  check_names(names, place);
  LogicalAssignment result;
  result.rules.resize(names.size());
  std::vector<std::optional<SpecEntry>> assigned(names.size());
  std::vector<std::string> skipped(names.size());
  for (std::size_t d = 0; d < names.size(); ++d) {
    if (!is_name(names[d])) assigned[d] = names[d];
  }
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const auto named = std::find(names.begin(), names.end(), SpecEntry{rules[r].name});
    if (named == names.end()) continue;
    const auto d = static_cast<std::size_t>(named - names.begin());
    if (assigned[d]) continue;
    if (const auto holder = holder_of(rules[r].axes.axes, assigned)) {
      if (!skipped[d].empty()) continue;
      skipped[d] = fmt::format("rule \"{}\" skipped: {} is taken by dimension {}",
                               to_string(rules[r]), holder->axis, holder->dimension);
      continue;
    }
    assigned[d] = rules[r].axes;
    result.rules[d] = r;
  }
  for (std::size_t d = 0; d < names.size(); ++d) {
    result.spec.push_back(assigned[d].value_or(SpecEntry{}));
    if (assigned[d] || !result.reason.empty()) continue;
    result.reason =
        skipped[d].empty() ? fmt::format("no rule for \"{}\"", names[d].axes[0]) : skipped[d];
  }
  return result;
}

PartitionSpec logical_names(const LogicalAxes& axes) {
  PartitionSpec names;
  for (const std::optional<std::string>& axis : axes) {
    names.push_back(axis ? SpecEntry{*axis} : SpecEntry{});
  }
  return names;
}

PartitionSpec logical_to_mesh_axes(const LogicalAxes& names, const LogicalAxisRules& rules,
                                   const Place& place) {
  return apply_logical_axis_rules(logical_names(names), rules, place).spec;
}

std::optional<PartitionSpec> with_logical_constraint(const PartitionSpec& names,
                                                     const LogicalAxisRules& rules,
                                                     RulesFallback fallback, const Place& place) {
  if (rules.empty()) return std::nullopt;
  LogicalAssignment assignment = apply_logical_axis_rules(names, rules, place);
  if (assignment.reason.empty() || fallback == RulesFallback::axis_is_unsharded) {
    return std::move(assignment.spec);
  }
  if (fallback == RulesFallback::no_constraint) return std::nullopt;
  throw RuleError(
      "ValueError", place,
      fmt::format("{}: a dimension without mesh axes: {}", to_string(names), assignment.reason));
}

SpecAssignment assign_by_logical_rules(const ParameterTree& tree, const LogicalAxisRules& rules,
                                       const ApplyRules& apply) {
  SpecAssignment result;
  for (const LogicalAxisRule& rule : rules) result.rules.push_back({to_string(rule), rule.place});
  for (const ParameterLeaf& leaf : tree.leaves) {
    if (!leaf.logical_axes) {
      result.leaves.push_back({PartitionSpec(leaf.shape.size()), std::nullopt, "no logical axes"});
      continue;
    }
    const PartitionSpec names = logical_names(*leaf.logical_axes);
    const LogicalAssignment assignment =
        apply ? apply(names, leaf) : apply_logical_axis_rules(names, rules, leaf.place);
    LeafSpec spec{assignment.spec, std::nullopt, assignment.reason};
    count_rules(assignment, rules, *leaf.logical_axes, spec, result.rules);
    result.leaves.push_back(std::move(spec));
  }
  return result;
}

SpecAssignment assign_logical_axes(const ParameterTree& tree, const Mesh& /*mesh*/,
                                   const JsonReader& strategy) {
  return assign_by_logical_rules(tree, read_logical_axis_rules(strategy.at("rules")));
}

}  // namespace shardsim
