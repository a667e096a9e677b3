#include "strategies/rules/rule_system.hpp"

#include "strategies/rules/explicit_specs.hpp"
#include "strategies/rules/flax_nnx.hpp"
#include "strategies/rules/haliax.hpp"
#include "strategies/rules/logical_axes.hpp"
#include "strategies/rules/maxtext.hpp"
#include "strategies/rules/t5x.hpp"

namespace shardsim {

const std::vector<RuleSystem>& rule_systems() {
  static const std::vector<RuleSystem> table = {
      {"logical_axes", "logical axis rules of flax.linen, by priority", assign_logical_axes},
      {"flax_nnx", "sharding names of flax.nnx, renamed", assign_flax_nnx},
      {"maxtext", "logical axis rules with MaxText's overrides and fits", assign_maxtext},
      {"t5x", "t5x's standard logical axis rules", assign_t5x},
      {"haliax", "axis mapping of haliax", assign_haliax},
      {"specs", "a PartitionSpec for each parameter by name", assign_explicit_specs},
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
