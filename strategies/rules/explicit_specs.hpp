// Row "specs": the spec of every leaf as the user writes it, leaf by leaf.
//
//   {"specs": {"params/head/kernel": ["fsdp", null], "params/head/bias": "P(None)"},
//    "default": []}
//
// A spec is a list or the text that JAX prints. Each is checked as jax.sharding.NamedSharding
// checks it on its leaf (partition_spec.hpp). A name that is no leaf is an InputError; so is a leaf
// that is not listed when there is no default.
#pragma once

#include "strategies/rules/rule_system.hpp"

namespace shardsim {

[[nodiscard]] SpecAssignment assign_explicit_specs(const ParameterTree& tree, const Mesh& mesh,
                                                   const JsonReader& strategy);

}  // namespace shardsim
