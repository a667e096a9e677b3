// big_vision's sharding rules: ordered [pattern, tactic] pairs (config.sharding_strategy).
//
//   "strategy": {"name": "big_vision",
//                "rules": [["img/.*", "replicate"],
//                          [".*/mlp/.*", "shard_dim(\"model\", -1)|fsdp(axis=\"data\")"],
//                          [".*", "fsdp(axis=\"data\", min_size_to_shard_mb=4)"]],
//                "logical_axis_rules": [["mlp", "model"]],      // config.sharding_rules
//                "argsort": "stable"}                           // dimension_order.hpp
//
// A leaf belongs to the first pattern that matches its whole name (re.fullmatch). A tactic is one
// op or several joined by "|", applied from left to right to a spec of nulls:
//
//   replicate()                          refuses a spec that already shards
//   fsdp(axis, min_size_to_shard_mb=4)   leaves of more MiB than that: the largest free dimension
//                                        that the axes divide
//                                        (strategies/rules/dimension_order.hpp)
//   shard_dim(axis, dim, ignore_ndim_error=False)   that dimension, divisible or not
//   logical_partitioning()               flax's logical axis rules, for boxed leaves
//
// Left out, "rules" is [[".*", "replicate"]] and "logical_axis_rules" [["act_batch", "data"]], as
// in big_vision's train.py.
//
// Reproduced on purpose: errors surface entry by entry, op by op, leaf by leaf; shard_dim refuses
// dim = -rank; fsdp looks its axes up even for leaves too small to shard; a boxed leaf
// (ParameterLeaf::logical_axes) is given to the tactic of every entry, whatever the pattern says,
// and only logical_partitioning can come first there.
//
// Source: google-research/big_vision big_vision/sharding.py, pp/registry.py, utils.py at 0127fb6.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/rules/dimension_order.hpp"
#include "strategies/rules/logical_axes.hpp"
#include "strategies/rules/rule_system.hpp"

namespace shardsim {

struct BigVisionRule {
  std::string pattern;
  std::string tactic;
  Place place;
};

// [[pattern, tactic], ...]. ValueError for a list that is empty or holds anything but pairs.
[[nodiscard]] std::vector<BigVisionRule> read_big_vision_rules(const JsonReader& json);

struct FirstMatches {
  std::vector<RuleIndex> first;  // by name: the first pattern that matches it
  std::vector<RuleUse> uses;     // by pattern; "pattern -> tactic"
};
// make_mask_trees. AssertionError for a pattern that starts with "/", re.error for one that
// Python's `re` refuses.
[[nodiscard]] FirstMatches match_big_vision_rules(const std::vector<BigVisionRule>& rules,
                                                  const std::vector<std::string>& names);

// infer_sharding. `place` is that of the strategy.
[[nodiscard]] SpecAssignment infer_sharding(const ParameterTree& tree,
                                            const std::vector<BigVisionRule>& rules,
                                            const LogicalAxisRules& logical_axis_rules,
                                            const Mesh& mesh, const Place& place,
                                            EqualDimensions ties = EqualDimensions::stable);

// Batches go where the rule of "act_batch" says, if "logical_axis_rules" has one.
[[nodiscard]] SystemAxes big_vision_axes(const JsonReader& strategy, const Mesh& mesh);

// The row of the table.
[[nodiscard]] SpecAssignment assign_big_vision(const ParameterTree& tree, const Mesh& mesh,
                                               const JsonReader& strategy);

}  // namespace shardsim
