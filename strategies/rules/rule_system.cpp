#include "strategies/rules/rule_system.hpp"

#include "strategies/rules/auto_spec.hpp"
#include "strategies/rules/fsdp_tutorial.hpp"
#include "strategies/rules/match_partition_rules.hpp"
#include "strategies/rules/partition_manager.hpp"
#include "strategies/rules/pattern_spec.hpp"
#include "strategies/rules/praxis.hpp"

namespace shardsim {

const std::vector<RuleSystem>& rule_systems() {
  static const std::vector<RuleSystem> table = {
      {"match_partition_rules",
       "eformer, EasyDeL: the first pattern found in a name gives the spec",
       {"rules", "min_size", "strict"},
       assign_match_partition_rules},
      {"partition_manager",
       "EasyDeL: ColumnWise, RowWise, ... or dimensions by what they mean",
       {"rules", "min_size", "strict", "partition_axis", "semantic_axes", "mode", "correct"},
       assign_partition_manager},
      {"eformer_pattern",
       "eformer: patterns and axes in one string",
       {"pattern", "default"},
       assign_eformer_pattern},
      {"auto_partition_spec",
       "eformer: the largest dimension takes the largest axis that divides it",
       {"names", "min_size", "reverse"},
       assign_auto_partition_spec},
      {"praxis",
       "lingvo, praxis: split-dims mappings, by weight or by rank",
       {"weights", "repeat_prefix", "shard_on_batch_dim", "map_0d", "map_1d", "map_2d", "map_3d",
        "map_4d", "map_5d", "map_6d", "map_7d", "map_8d"},
       assign_praxis},
      {"fsdp_tutorial",
       "shard_map FSDP of the UvA tutorials: the largest free dimension",
       {"axis", "min_weight_size"},
       assign_fsdp_tutorial},
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
