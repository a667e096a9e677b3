#include "strategies/rules/rule_system.hpp"

#include "strategies/rules/fsdp_tutorial.hpp"
#include "strategies/rules/praxis.hpp"

namespace shardsim {

const std::vector<RuleSystem>& rule_systems() {
  static const std::vector<RuleSystem> table = {
      {"fsdp_tutorial", "shard_map FSDP of the UvA tutorials: the largest free dimension",
       assign_fsdp_tutorial},
      {"praxis", "split-dims mappings of lingvo and praxis, by weight or by rank", assign_praxis},
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
