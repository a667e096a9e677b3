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
#include "strategies/rules/partition_axis.hpp"
#include "strategies/rules/partition_manager.hpp"
#include "strategies/rules/pattern_spec.hpp"
#include "strategies/rules/praxis.hpp"
#include "strategies/rules/t5x.hpp"

namespace shardsim {
namespace {

// levanter's mesh: data, replica and model, and replica_dcn over pods.
SystemAxes haliax_axes(const JsonReader& /*strategy*/, const Mesh& /*mesh*/) {
  return {.roles = {{"replica_dcn", AxisRole::batch}}};
}

const std::vector<RuleSystem> system_table = {
    {.name = "big_vision",
     .summary = "big_vision: patterns with tactics, \"fsdp(axis='data')|shard_dim('model', 0)\"",
     .keys = {"rules", "logical_axis_rules", "argsort"},
     .assign = assign_big_vision,
     .axes = big_vision_axes,
     .state_prefix = "opt/",
     .counts_steps = false,
     .sees_state = true},
    {.name = "match_partition_rules",
     .summary = "eformer, EasyDeL: the first pattern found in a name gives the spec",
     .keys = {"rules", "min_size", "strict", "partition_axis"},
     .assign = assign_match_partition_rules,
     .read_activation = read_partition_axis_spec,
     .unfit_activation = UnfitActivation::skipped,
     .axes = axes_of_march_2025,
     .sees_state = true},
    {.name = "partition_manager",
     .summary = "EasyDeL: ColumnWise, RowWise, ... or dimensions by what they mean",
     .keys = {"rules", "min_size", "strict", "partition_axis", "semantic_axes", "mode", "correct"},
     .assign = assign_partition_manager,
     .read_activation = read_managed_activation,
     .unfit_activation = UnfitActivation::corrected,
     .axes = axes_of_partition_axis,
     .sees_state = true},
    {.name = "eformer_pattern",
     .summary = "eformer: patterns and axes in one string",
     .keys = {"pattern", "default"},
     .assign = assign_eformer_pattern,
     .unfit_activation = UnfitActivation::skipped,
     .axes = axes_of_march_2025,
     .sees_state = true},
    {.name = "auto_partition_spec",
     .summary = "eformer: the largest dimension takes the largest axis that divides it",
     .keys = {"names", "min_size", "reverse", "keep_duplicates", "memory_limit", "argsort"},
     .assign = assign_auto_partition_spec,
     .unfit_activation = UnfitActivation::skipped,
     .axes = axes_of_partition_axis,
     .sees_state = true},
    {.name = "logical_axes",
     .summary = "flax.linen: logical axis rules, by priority",
     .keys = {"rules"},
     .assign = assign_logical_axes,
     .reads_logical_axes = true,
     .view = "flax"},
    {.name = "flax_nnx",
     .summary = "flax.nnx: names of dimensions, renamed",
     .keys = {"rules", "context_rules"},
     .assign = assign_flax_nnx,
     .reads_logical_axes = true,
     .view = "flax"},
    {.name = "maxtext",
     .summary = "MaxText: logical axis rules with its overrides and fits",
     .keys = {"rules", "model_rules", "remove_size_one_axes", "fit"},
     .assign = assign_maxtext,
     .axes = maxtext_axes,
     .reads_logical_axes = true,
     .view = "maxtext",
     .view_of = view_of_maxtext},
    {.name = "t5x",
     .summary = "t5x: its standard logical axis rules",
     .keys = {"activation_dims", "param_dims", "extra_rules"},
     .assign = assign_t5x,
     .reads_logical_axes = true,
     .view = "flax"},
    {.name = "haliax",
     .summary = "haliax: a mapping of axis names",
     .keys = {"mapping"},
     .assign = assign_haliax,
     .axes = haliax_axes,
     .reads_logical_axes = true,
     .view = "levanter"},
    {.name = "praxis",
     .summary = "lingvo, praxis: split-dims mappings of weights, and of inputs by their rank",
     .keys = {"weights", "repeat_prefix", "inputs_split_mapping"},
     .assign = assign_praxis,
     .uneven_parameters = UnevenParameters::padded,
     .axes = praxis_axes,
     .inputs = praxis_inputs,
     .entering_axes = praxis_entering_axes,
     .whole_outputs = true,
     .runtime = {.gathers = {.grain = Grain::tensor},
                 .reductions = {.grain = Grain::tensor},
                 .averages_loss = true}},
    {.name = "fsdp_tutorial",
     .summary = "shard_map FSDP of the UvA tutorials: the largest free dimension",
     .keys = {"axis", "min_weight_size", "argsort", "modules", "partitioned"},
     .assign = assign_fsdp_tutorial,
     .uneven_parameters = UnevenParameters::refused_by_shard_map,
     .drops_examples = true,
     .runtime = {.gathers = {.grain = Grain::tensor,
                             .dtype = GatherDType::stored,
                             .kept = Kept::backward,
                             .kept_root = Kept::backward},
                 .reductions = {.grain = Grain::tensor,
                                .each_microbatch = ReduceEachMicrobatch::shards}}},
    {.name = "specs",
     .summary = "a PartitionSpec for each parameter by name",
     .keys = {"specs", "default"},
     .assign = assign_explicit_specs},
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
