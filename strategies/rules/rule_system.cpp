#include "strategies/rules/rule_system.hpp"

#include "strategies/rules/auto_spec.hpp"
#include "strategies/rules/match_partition_rules.hpp"
#include "strategies/rules/partition_manager.hpp"
#include "strategies/rules/pattern_spec.hpp"

namespace shardsim {

const std::vector<RuleSystem>& rule_systems() {
  static const std::vector<RuleSystem> table = {
      {"match_partition_rules",
       "eformer and EasyDeL: the first pattern found in a name gives the spec",
       assign_match_partition_rules},
      {"eformer_pattern", "eformer: patterns and axes in one string", assign_eformer_pattern},
      {"auto_partition_spec",
       "eformer: the largest dimension takes the largest axis that divides it",
       assign_auto_partition_spec},
      {"partition_manager", "EasyDeL: ColumnWise, RowWise, ... or dimensions by what they mean",
       assign_partition_manager},
  };
  return table;
}

const RuleSystem* find_rule_system(std::string_view name) {
  for (const RuleSystem& system : rule_systems()) {
    if (system.name == name) return &system;
  }
  return nullptr;
}

}  // namespace shardsim
