#include "strategies/rules/rule_system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strategies/rules/auto_spec.hpp"
#include "strategies/rules/big_vision.hpp"
#include "strategies/rules/explicit_specs.hpp"
#include "strategies/rules/flax_nnx.hpp"
#include "strategies/rules/fsdp_tutorial.hpp"
#include "strategies/rules/haliax.hpp"
#include "strategies/rules/logical_axes.hpp"
#include "strategies/rules/match_partition_rules.hpp"
#include "strategies/rules/maxtext.hpp"
#include "strategies/rules/partition_manager.hpp"
#include "strategies/rules/pattern_spec.hpp"
#include "strategies/rules/praxis.hpp"
#include "strategies/rules/t5x.hpp"

namespace shardsim {
namespace {

const std::vector<RuleSystem> system_table = {
    {"big_vision",
     "big_vision: patterns with tactics, \"fsdp(axis='data')|shard_dim('model', 0)\"",
     {"rules", "logical_axis_rules", "argsort"},
     assign_big_vision},
    {"match_partition_rules",
     "eformer, EasyDeL: the first pattern found in a name gives the spec",
     {"rules", "min_size", "strict", "partition_axis"},
     assign_match_partition_rules,
     read_partition_axis_spec,
     UnfitActivation::skipped},
    {"partition_manager",
     "EasyDeL: ColumnWise, RowWise, ... or dimensions by what they mean",
     {"rules", "min_size", "strict", "partition_axis", "semantic_axes", "mode", "correct"},
     assign_partition_manager,
     read_managed_activation,
     UnfitActivation::corrected},
    {"eformer_pattern",
     "eformer: patterns and axes in one string",
     {"pattern", "default"},
     assign_eformer_pattern,
     nullptr,
     UnfitActivation::skipped},
    {"auto_partition_spec",
     "eformer: the largest dimension takes the largest axis that divides it",
     {"names", "min_size", "reverse"},
     assign_auto_partition_spec,
     nullptr,
     UnfitActivation::skipped},
    {"logical_axes", "flax.linen: logical axis rules, by priority", {"rules"}, assign_logical_axes},
    {"flax_nnx",
     "flax.nnx: names of dimensions, renamed",
     {"rules", "context_rules"},
     assign_flax_nnx},
    {"maxtext",
     "MaxText: logical axis rules with its overrides and fits",
     {"rules", "model_rules", "remove_size_one_axes", "fit"},
     assign_maxtext},
    {"t5x",
     "t5x: its standard logical axis rules",
     {"activation_dims", "param_dims", "extra_rules"},
     assign_t5x},
    {"haliax", "haliax: a mapping of axis names", {"mapping"}, assign_haliax},
    {"praxis",
     "lingvo, praxis: split-dims mappings, by weight or by rank",
     {"weights", "repeat_prefix", "shard_on_batch_dim", "map_0d", "map_1d", "map_2d", "map_3d",
      "map_4d", "map_5d", "map_6d", "map_7d", "map_8d"},
     assign_praxis},
    {"fsdp_tutorial",
     "shard_map FSDP of the UvA tutorials: the largest free dimension",
     {"axis", "min_weight_size", "argsort"},
     assign_fsdp_tutorial},
    {"specs",
     "a PartitionSpec for each parameter by name",
     {"specs", "default"},
     assign_explicit_specs},
};

}  // namespace

const std::vector<RuleSystem>& rule_systems() { return system_table; }

std::string decided_by(const LeafSpec& leaf, const std::vector<RuleUse>& rules) {
  const auto text = [&](std::size_t rule) {
    return fmt::format("rule {}: {}", rule, rules[rule].text);
  };
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < leaf.dimension_rules.size(); ++d) {
    if (const RuleIndex rule = leaf.dimension_rules[d]) {
      parts.push_back(fmt::format("dimension {} by {}", d, text(*rule)));
    }
  }
  const bool is_vector = leaf.dimension_rules.size() == 1;
  if (!parts.empty() && !is_vector) return fmt::format("{}", fmt::join(parts, "; "));
  if (leaf.rule) return text(*leaf.rule);
  return leaf.tactic.empty() ? "no rule" : leaf.tactic;
}

const RuleSystem* find_rule_system(std::string_view name) {
  for (const RuleSystem& system : rule_systems()) {
    if (system.name == name) return &system;
  }
  return nullptr;
}

}  // namespace shardsim
