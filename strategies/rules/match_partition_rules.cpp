#include "strategies/rules/match_partition_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/partition_axis.hpp"

namespace shardsim {
namespace {

bool is_split(const SpecEntry& entry) { return !entry.is_whole(); }

// What the spec of the rule that decided becomes on this leaf.
LeafSpec fit(const PartitionSpec& spec, const ParameterLeaf& leaf, std::int64_t min_size) {
  LeafSpec fitted;
  if (element_count(leaf) < min_size) {
    if (std::any_of(spec.begin(), spec.end(), is_split)) {
      fitted.reason = fmt::format("{} elements are fewer than min_size={}",
                                  format_count(element_count(leaf)), min_size);
    }
    return fitted;
  }
  fitted.spec = spec;
  if (spec.size() <= leaf.shape.size()) return fitted;
  const auto cut = fitted.spec.begin() + static_cast<std::ptrdiff_t>(leaf.shape.size());
  if (std::any_of(cut, fitted.spec.end(), is_split)) {
    fitted.reason = fmt::format("spec of {} entries cut to {} {}", spec.size(), leaf.shape.size(),
                                leaf.shape.size() == 1 ? "dimension" : "dimensions");
  }
  fitted.spec.erase(cut, fitted.spec.end());
  return fitted;
}

}  // namespace

SpecRule make_spec_rule(std::string_view pattern, PartitionSpec spec, const Place& place) {
  std::string text = fmt::format("{} -> {}", pattern, to_string(spec));
  return {Pattern(pattern, place), std::move(spec), std::move(text), place};
}

RuleMatches rule_matches(const std::vector<SpecRule>& rules) {
  std::vector<RuleUse> uses;
  uses.reserve(rules.size());
  for (const SpecRule& rule : rules) uses.push_back({rule.text, rule.place});
  return RuleMatches(std::move(uses));
}

RuleIndex first_match(const std::vector<SpecRule>& rules, std::string_view name,
                      RuleMatches& matches) {
  std::vector<std::size_t> matching;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].pattern.search(name)) matching.push_back(i);
  }
  return matches.add(matching);
}

SpecAssignment match_partition_rules(const std::vector<SpecRule>& rules, const ParameterTree& tree,
                                     const MatchOptions& options, const Place& place) {
  SpecAssignment assignment;
  RuleMatches matches = rule_matches(rules);
  assignment.leaves.reserve(tree.leaves.size());
  for (const ParameterLeaf& leaf : tree.leaves) {
    if (options.strict && leaf.shape.empty()) {
      assignment.leaves.emplace_back().tactic = "scalar: rules are not asked";
      continue;
    }
    const RuleIndex rule = first_match(rules, leaf.name, matches);
    if (!rule) {
      throw RuleError("ValueError", place,
                      fmt::format("no rule matches parameter \"{}\"; a last rule [\".*\", []] "
                                  "would keep it whole",
                                  leaf.name));
    }
    const PartitionSpec& spec = rules[*rule].spec;
    assignment.leaves.push_back(options.strict ? fit(spec, leaf, options.min_size)
                                               : LeafSpec{spec, {}, {}});
    assignment.leaves.back().rule = rule;
  }
  assignment.rules = matches.uses();
  return assignment;
}

MatchOptions read_match_options(const JsonReader& json) {
  MatchOptions options;
  if (const auto min_size = json.find("min_size")) {
    options.min_size = min_size->integer(0, std::numeric_limits<std::int64_t>::max());
  }
  if (const auto strict = json.find("strict")) options.strict = strict->boolean();
  return options;
}

std::vector<SpecRule> read_spec_rules(
    const JsonReader& json, const std::function<PartitionSpec(const JsonReader&)>& read_spec) {
  std::vector<SpecRule> rules;
  for (const JsonReader& rule : json.elements()) {
    const std::vector<JsonReader> pair = rule.elements();
    if (pair.size() != 2) {
      throw RuleError("ValueError", rule.place(), "a rule is [pattern, spec]");
    }
    rules.push_back(make_spec_rule(pair[0].string(), read_spec(pair[1]), rule.place()));
  }
  return rules;
}

PartitionSpec read_partition_axis_spec(const JsonReader& spec, const JsonReader& strategy) {
  constexpr auto version = PartitionAxis::Version::march_2025;
  const auto overrides = strategy.find("partition_axis");
  const PartitionAxis axis =
      overrides ? PartitionAxis(version, *overrides) : PartitionAxis(version);
  const auto resolved = [&](const AxisRule& rule) {
    const AxisRule* field = rule.name() == nullptr ? nullptr : axis.find(*rule.name());
    return field == nullptr ? rule : *field;
  };
  PartitionSpec result;
  for (const JsonReader& entry : spec.elements()) {
    if (entry.is_object()) {
      result.push_back(read_spec_entry(entry));
      continue;
    }
    AxisRule rule = resolved(read_axis_rule(entry));
    if (const std::vector<AxisRule>* parts = rule.list()) {
      std::vector<AxisRule> axes;
      for (const AxisRule& part : *parts) axes.push_back(resolved(part));
      rule = {std::move(axes)};
    }
    result.push_back(to_spec_entry(rule, entry.place()));
  }
  return result;
}

SpecAssignment assign_match_partition_rules(const ParameterTree& tree, const Mesh& /*mesh*/,
                                            const JsonReader& strategy) {
  const JsonReader rules = strategy.at("rules");
  const auto read_spec = [&](const JsonReader& spec) {
    return read_partition_axis_spec(spec, strategy);
  };
  return match_partition_rules(read_spec_rules(rules, read_spec), tree,
                               read_match_options(strategy), rules.place());
}

}  // namespace shardsim
