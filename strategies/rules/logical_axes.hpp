// Logical axis rules as flax.linen applies them: dimensions have logical names ("embed"), an
// ordered list of rules says which mesh axes a name may take.
//
//   rules [["batch", "data"], ["mlp", "model"], ["embed", "model"], ["embed", "data"]]
//   names [embed, mlp]    ->  P(data, model)    model is taken by mlp, so embed falls back to data
//   names [batch, embed]  ->  P(data, model)
//   names [kv]            ->  P(None)           no rule
//
// The rules are taken in their order, whatever the order of the dimensions. A rule applies when a
// dimension has its name, nothing is assigned to that dimension yet, and none of the rule's mesh
// axes lies on another dimension: one axis taken skips the whole rule. null and [] are assignments
// too: they end the search for their dimension. UNCONSTRAINED can be assigned any number of times.
//
// Source: google/flax flax/linen/spmd.py at 18f8f31, logical_to_mesh_axes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "sharding/partition_spec.hpp"
#include "strategies/rules/rule_system.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

struct LogicalAxisRule {
  std::string name;  // logical
  SpecEntry axes;    // of the mesh; or UNCONSTRAINED
  Place place;
};

using LogicalAxisRules = std::vector<LogicalAxisRule>;

// [["embed", "fsdp"], ["mlp", ["fsdp", "tensor"]], ["kv", null]]. Throws RuleError (ValueError)
// when it is no list of pairs.
[[nodiscard]] LogicalAxisRules read_logical_axis_rules(const JsonReader& json);
[[nodiscard]] std::string to_string(const LogicalAxisRule& rule);  // "mlp -> (fsdp, tensor)"

// Mesh axes of the first rule for a name; nothing: it has none.
[[nodiscard]] std::optional<std::vector<std::string>> axes_of_rule(const LogicalAxisRules& rules,
                                                                   std::string_view name);

// What the rules make of one array.
struct LogicalAssignment {
  PartitionSpec spec;                             // one entry per name
  std::vector<std::optional<std::size_t>> rules;  // by dimension: what assigned its entry
  // The first dimension left without assignment, in words: "rule \"embed -> data\" skipped: data is
  // taken by dimension 0", "no rule for \"kv\"". Empty when there is none.
  std::string reason;
};

// `names` as flax's logical PartitionSpec: an entry of one axis is a logical name; null,
// UNCONSTRAINED and tuples stand for themselves. Throws RuleError (ValueError) at `place` for a
// name that two dimensions have.
[[nodiscard]] LogicalAssignment apply_logical_axis_rules(const PartitionSpec& names,
                                                         const LogicalAxisRules& rules,
                                                         const Place& place);
[[nodiscard]] PartitionSpec logical_names(const LogicalAxes& axes);
[[nodiscard]] PartitionSpec logical_to_mesh_axes(const LogicalAxes& names,
                                                 const LogicalAxisRules& rules, const Place& place);

// What flax.linen.with_logical_constraint does with a name that got nothing from the rules.
enum class RulesFallback { axis_is_unsharded, raise_error, no_constraint };

// The spec that the array is constrained to; nothing when it is left alone: without rules, or with
// no_constraint. raise_error: RuleError (ValueError) for every name without assignment, also one
// whose rules all lost their axes to other dimensions.
[[nodiscard]] std::optional<PartitionSpec> with_logical_constraint(const PartitionSpec& names,
                                                                   const LogicalAxisRules& rules,
                                                                   RulesFallback fallback,
                                                                   const Place& place);

// The leaves of a tree by rules; a leaf without logical axes is whole. `apply` answers a leaf's
// assignment; left out, it is apply_logical_axis_rules. A rule matches the leaves that have its
// name. Of several rules that decide a leaf, its `rule` is the first that gave it an axis, or else
// the first.
using ApplyRules = std::function<LogicalAssignment(const PartitionSpec&, const ParameterLeaf&)>;
[[nodiscard]] SpecAssignment assign_by_logical_rules(const ParameterTree& tree,
                                                     const LogicalAxisRules& rules,
                                                     const ApplyRules& apply = {});

// Row "logical_axes": {"rules": [["embed", "fsdp"], ...]}.
[[nodiscard]] SpecAssignment assign_logical_axes(const ParameterTree& tree, const Mesh& mesh,
                                                 const JsonReader& strategy);

}  // namespace shardsim
