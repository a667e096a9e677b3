// eformer's create_pattern_based_partition_spec: rules in one string.
//
//   "attention|mlp->data,hidden->model.data"
//     a name in which "attention" or "mlp" is found   ->  P(data)
//     another in which "hidden" is found              ->  P(model, data)
//     any other                                       ->  the default, P() unless given
//
// The string is taken apart without regard to what is in it: "," between rules, "->" once between
// patterns and spec, "|" between patterns, "." between the axes of the dimensions. So "," cannot
// stand in a pattern, a piece without "->" is dropped, "(a|b)" becomes "(a" and "b)", an empty
// pattern is found everywhere, an empty axis leaves its dimension whole, "None" is the name of an
// axis, and there is no way to give a dimension two axes. Neither shapes nor axes are checked.
//
// Source: github.com/erfanzar/eformer, eformer/escale/partition/constraints.py at 5c877a3.
#pragma once

#include <string_view>
#include <vector>

#include "strategies/rules/match_partition_rules.hpp"

namespace shardsim {

// One rule per pattern. Throws RuleError: AssertionError without a mesh, which is for nothing else,
// ValueError for a rule with more than one "->".
[[nodiscard]] std::vector<SpecRule> parse_pattern_spec(std::string_view text, const Mesh* mesh,
                                                       const Place& place);
// The spec of the first pattern that is found in a leaf's name.
[[nodiscard]] SpecAssignment assign_pattern_spec(const std::vector<SpecRule>& rules,
                                                 const PartitionSpec& default_spec,
                                                 const ParameterTree& tree);

// {"pattern": "attention|mlp->data,hidden->model", "default": []}
[[nodiscard]] SpecAssignment assign_eformer_pattern(const ParameterTree& tree, const Mesh& mesh,
                                                    const JsonReader& strategy);

}  // namespace shardsim
