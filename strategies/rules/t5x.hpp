// t5x's standard logical axis rules, on a mesh with the axes data and model.
//
//   activation dims, parameter dims   embed goes to
//   1, 1                              nothing
//   2, 1                              model
//   1, 2                              data: fully sharded parameters
//   2, 2                              model, or data where model is taken
//
// In all of them batch goes to data, vocab, mlp, heads and joined_kv to model, and kv,
// relpos_buckets, abspos_buckets, length, layers, stack and mlp_activations to nothing.
//
// Source: google-research/t5x t5x/partitioning.py at cc342d4, standard_logical_axis_rules.
#pragma once

#include <cstdint>

#include "strategies/rules/logical_axes.hpp"

namespace shardsim {

// `more` comes last. Throws RuleError (ValueError) for other numbers than 1 and 2.
[[nodiscard]] LogicalAxisRules standard_logical_axis_rules(std::int64_t activation_dims,
                                                           std::int64_t parameter_dims,
                                                           const LogicalAxisRules& more,
                                                           const Place& place);

// Row "t5x": {"activation_dims": 1, "param_dims": 2, "extra_rules": [...]}; all may be left out,
// both numbers are then 1.
[[nodiscard]] SpecAssignment assign_t5x(const ParameterTree& tree, const Mesh& mesh,
                                        const JsonReader& strategy);

}  // namespace shardsim
