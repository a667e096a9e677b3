#include "strategies/rules/pattern_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sharding/rule_error.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {
namespace {

// Rules named in one warning.
constexpr std::size_t most_named = 4;

std::vector<RuleUse> not_yet_used(const std::vector<Rule>& rules) {
  std::vector<RuleUse> uses;
  for (const Rule& rule : rules) uses.push_back({rule.pattern, rule.place});
  return uses;
}

}  // namespace

PatternRules::PatternRules(const std::vector<Rule>& rules, const Mesh& mesh)
    : rules_(rules), mesh_(mesh), matches_(not_yet_used(rules)) {
  for (const Rule& rule : rules) patterns_.emplace_back(rule.pattern, rule.place);
}

RuleIndex PatternRules::find(const std::string& name) {
  std::vector<std::size_t> matching;
  for (std::size_t r = 0; r < patterns_.size(); ++r) {
    if (patterns_[r].search(name)) matching.push_back(r);
  }
  return matches_.add(matching);
}

RuleIndex PatternRules::find_for_all(const std::string& name,
                                     const std::vector<std::int32_t>& numbers) {
  const RuleIndex first = find(instance_name(name, numbers.front()));
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const RuleIndex match = find(instance_name(name, numbers[i]));
    if (match == first) continue;
    const Rule& rule =
        rules_[std::min(first.value_or(rules_.size()), match.value_or(rules_.size()))];
    fail_apart(rule.place, fmt::format("pattern \"{}\" tells", rule.pattern), name, numbers.front(),
               numbers[i]);
  }
  return first;
}

Sharding PatternRules::sharding(std::size_t rule, const std::string& name, std::size_t rank) const {
  const PartitionSpec& spec = rules_[rule].spec;
  if (spec.size() > rank) {
    throw InputError(
        rules_[rule].place,
        fmt::format("spec has {} entries, but {} has {} dimensions", spec.size(), name, rank));
  }
  return without_unit_axes(to_sharding(spec, rank, mesh_, rules_[rule].place));
}

void PatternRules::require_matches(std::string_view what) const {
  for (const RuleUse& use : matches_.uses()) {
    if (use.matches > 0) continue;
    throw InputError(use.place, fmt::format("pattern \"{}\" matches no {}", use.text, what));
  }
}

void fail_apart(const Place& place, std::string_view who, const std::string& name, std::int64_t one,
                std::int64_t other) {
  throw InputError(place,
                   fmt::format("{} layers of one repeated block apart ({} and {}), which is not "
                               "supported",
                               who, instance_name(name, one), instance_name(name, other)));
}

std::vector<std::string> rule_warnings(const std::vector<RuleUse>& rules, std::string_view what) {
  std::vector<std::string> unused;
  std::vector<std::string> warnings;
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const RuleUse& rule = rules[r];
    if (rule.built_in) continue;
    if (rule.matches == 0) unused.push_back(fmt::format("{} \"{}\"", r, rule.text));
    if (!rule.shadowed_by) continue;
    warnings.push_back(fmt::format(
        "rule {} \"{}\" never gets its turn: rule {} \"{}\" comes before it and matches every {} "
        "that it matches",
        r, rule.text, *rule.shadowed_by, rules[*rule.shadowed_by].text, what));
  }
  if (unused.empty()) return warnings;
  const std::size_t named = std::min(unused.size(), most_named);
  const std::string more =
      unused.size() > named ? fmt::format(" and {} more", unused.size() - named) : "";
  unused.resize(named);
  warnings.insert(warnings.begin(), fmt::format("no {} is matched by rule {}{}", what,
                                                fmt::join(unused, ", "), more));
  return warnings;
}

std::vector<std::string> system_warnings(const std::string& system,
                                         const std::vector<std::string>& logged) {
  if (logged.empty()) return {};
  const std::string more =
      logged.size() > 1 ? fmt::format(", and {} more like it", logged.size() - 1) : "";
  return {fmt::format("{} logs \"{}\"{}", system, logged[0], more)};
}

}  // namespace shardsim
