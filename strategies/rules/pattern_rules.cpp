#include "strategies/rules/pattern_rules.hpp"

#include <fmt/format.h>

#include "strategies/rules/rule_error.hpp"

namespace shardsim {

PatternRules::PatternRules(const std::vector<Rule>& rules, const Mesh& mesh)
    : rules_(rules), mesh_(mesh) {
  for (const Rule& rule : rules) {
    patterns_.emplace_back(rule.pattern, rule.place);
    uses_.push_back({rule.pattern, rule.place});
  }
}

std::optional<std::size_t> PatternRules::find(const std::string& name) {
  std::optional<std::size_t> first;
  for (std::size_t r = 0; r < patterns_.size(); ++r) {
    if (!patterns_[r].search(name)) continue;
    ++uses_[r].matches;
    if (!first) first = r;
  }
  if (first) ++uses_[*first].decides;
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
  for (const RuleUse& use : uses_) {
    if (use.matches > 0) continue;
    throw InputError(use.place, fmt::format("pattern \"{}\" matches no {}", use.text, what));
  }
}

std::vector<std::string> shadow_warnings(const std::vector<RuleUse>& rules, std::string_view what) {
  std::vector<std::string> warnings;
  for (std::size_t r = 0; r < rules.size(); ++r) {
    if (rules[r].matches == 0 || rules[r].decides > 0) continue;
    warnings.push_back(
        fmt::format("rule {} \"{}\" is shadowed: an earlier rule matches every {} it matches", r,
                    rules[r].text, what));
  }
  return warnings;
}

}  // namespace shardsim
