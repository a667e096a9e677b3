#include "strategies/rules/pattern_spec.hpp"

#include <fmt/format.h>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

// As Python's str.split: "" has one part, the empty one.
std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  std::size_t end = text.find(separator);
  while (end != std::string_view::npos) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
    end = text.find(separator);
  }
  parts.push_back(text);
  return parts;
}

PartitionSpec parse_axes(std::string_view text) {
  PartitionSpec spec;
  for (const std::string_view axis : split(text, ".")) {
    spec.push_back(axis.empty() ? SpecEntry{} : SpecEntry{std::string(axis)});
  }
  return spec;
}

}  // namespace

std::vector<SpecRule> parse_pattern_spec(std::string_view text, const Mesh* mesh,
                                         const Place& place) {
  if (mesh == nullptr) {
    throw RuleError("AssertionError", place, "a pattern string needs a mesh");
  }
  std::vector<SpecRule> rules;
  for (const std::string_view piece : split(text, ",")) {
    const std::vector<std::string_view> sides = split(piece, "->");
    if (sides.size() == 1) continue;
    if (sides.size() > 2) {
      throw RuleError(
          "ValueError", place,
          fmt::format("\"{}\" has more than one \"->\": a rule is pattern->axes", piece));
    }
    const PartitionSpec spec = parse_axes(sides[1]);
    for (const std::string_view pattern : split(sides[0], "|")) {
      rules.push_back(make_spec_rule(pattern, spec, place));
    }
  }
  return rules;
}

SpecAssignment assign_pattern_spec(const std::vector<SpecRule>& rules,
                                   const PartitionSpec& default_spec, const ParameterTree& tree) {
  SpecAssignment assignment;
  RuleMatches matches = rule_matches(rules);
  for (const ParameterLeaf& leaf : tree.leaves) {
    const RuleIndex rule = first_match(rules, leaf.name, matches);
    assignment.leaves.push_back({rule ? rules[*rule].spec : default_spec, rule, ""});
  }
  assignment.rules = matches.uses();
  return assignment;
}

SpecAssignment assign_eformer_pattern(const ParameterTree& tree, const Mesh& mesh,
                                      const JsonReader& strategy) {
  const JsonReader pattern = strategy.at("pattern");
  const auto default_spec = strategy.find("default");
  SpecAssignment assignment = assign_pattern_spec(
      parse_pattern_spec(pattern.string(), &mesh, pattern.place()),
      default_spec ? read_partition_spec(*default_spec) : PartitionSpec{}, tree);
  if (!default_spec) return assignment;
  for (LeafSpec& leaf : assignment.leaves) {
    if (!leaf.rule) leaf.tactic = "default";
  }
  return assignment;
}

}  // namespace shardsim
