#include "strategies/rules/rule_system.hpp"

namespace shardsim {

const std::vector<RuleSystem>& rule_systems() {
  static const std::vector<RuleSystem> table = {};
  return table;
}

const RuleSystem* find_rule_system(std::string_view name) {
  for (const RuleSystem& system : rule_systems()) {
    if (system.name == name) return &system;
  }
  return nullptr;
}

}  // namespace shardsim
