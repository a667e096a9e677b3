// Our own rules: a regular expression searched in the name, and the PartitionSpec of what it
// matches. The first rule that matches decides; what no rule matches is left to the caller.
//
//   "rules": [{"pattern": "(gate|up)_proj", "spec": ["model", null]},
//             {"pattern": "down_proj",      "spec": [null, "model"]}]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/pattern.hpp"
#include "plan/mesh.hpp"
#include "strategies/rules/rule_matches.hpp"
#include "strategies/strategy.hpp"

namespace shardsim {

class PatternRules {
 public:
  PatternRules(const std::vector<Rule>& rules, const Mesh& mesh);

  // The first rule that matches; every rule that matches is counted.
  [[nodiscard]] RuleIndex find(const std::string& name);
  // The same for all layers of a kind ("{}" in the name stands for their numbers). Throws
  // InputError where they are told apart.
  [[nodiscard]] RuleIndex find_for_all(const std::string& name,
                                       const std::vector<std::int32_t>& numbers);
  // Throws RuleError when the spec is longer than the rank. Axes of one device are left out.
  [[nodiscard]] Sharding sharding(std::size_t rule, const std::string& name,
                                  std::size_t rank) const;
  [[nodiscard]] std::vector<RuleUse> uses() const { return matches_.uses(); }
  // Throws InputError for a rule that matched nothing: "matches no parameter".
  void require_matches(std::string_view what) const;

 private:
  const std::vector<Rule>& rules_;
  const Mesh& mesh_;
  std::vector<Pattern> patterns_;
  RuleMatches matches_;
};

// "<who> layers of one repeated block apart (...)": layers `one` and `other` of `name`.
[[noreturn]] void fail_apart(const Place& place, std::string_view who, const std::string& name,
                             std::int64_t one, std::int64_t other);

// Warnings about rules that match nothing, in one line, and about those that an earlier and wider
// rule shadows. Rules of the system itself are left out: nobody wrote them for this tree.
[[nodiscard]] std::vector<std::string> rule_warnings(const std::vector<RuleUse>& rules,
                                                     std::string_view what);

// What a rule system logs, as one warning: the first of them and the number of the others.
[[nodiscard]] std::vector<std::string> system_warnings(const std::string& system,
                                                       const std::vector<std::string>& logged);

}  // namespace shardsim
