// Sharding names of flax.nnx: a rule renames a name, and that is all.
//
//   rules [["embed", "data"], ["mlp", "model"]]
//   names [embed, mlp]   ->  P(data, model)
//   names [embed, data]  ->  P(data, data)     no conflict is seen here; NamedSharding refuses it
//
// Unlike flax.linen's rules (logical_axes.hpp): a name without rule stays and is taken for a mesh
// axis, of two rules for one name the last counts, and nothing looks at axes in use.
//
// Source: google/flax flax/core/spmd.py at 18f8f31, from_sharding_rules and composite_rules.
#pragma once

#include "strategies/rules/logical_axes.hpp"

namespace shardsim {

[[nodiscard]] LogicalAssignment from_sharding_rules(const PartitionSpec& names,
                                                    const LogicalAxisRules& rules);

// The rules of the context together with those of a variable. When one list is empty the other is
// the answer; otherwise each name is left once, where it first stood. Throws RuleError (ValueError)
// for a name to which `more` gives other axes.
[[nodiscard]] LogicalAxisRules composite_rules(const LogicalAxisRules& rules,
                                               const LogicalAxisRules& more);

// Row "flax_nnx": {"rules": [...], "context_rules": [...]}; the latter may be left out.
[[nodiscard]] SpecAssignment assign_flax_nnx(const ParameterTree& tree, const Mesh& mesh,
                                             const JsonReader& strategy);

}  // namespace shardsim
