#include "strategies/rules/rule_system.hpp"

#include "strategies/rules/big_vision.hpp"

namespace shardsim {

const std::vector<RuleSystem>& rule_systems() {
  static const std::vector<RuleSystem> table = {
      {"big_vision", "big_vision's [pattern, tactic] pairs: fsdp, shard_dim, replicate",
       assign_big_vision},
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
