// The whole train state of a parameter tree: beside the parameters the optimizer's moments, its
// count, the step and the random key, as optax and the rule systems keep them.
//
//   parameters 0/w f32[1024, 512]; adam
//     opt_state/0/mu/0/w, opt_state/0/nu/0/w  f32[1024, 512]
//     opt_state/0/count  i32[]        step  i32[]        rng  i32[2] (of unsigned integers)
//
// Moments have shape and dtype of their parameter. How the state lies is the system's own; the
// random key is an argument of its own, and whole:
//
//   big_vision                      infer_sharding sees parameters and optimizer state as one tree;
//                                   names begin with "opt/", and there is no step
//   match_partition_rules,          the rules see the whole state, the step as well
//   partition_manager,
//   eformer_pattern,
//   auto_partition_spec
//   all others                      moments lie as their parameters (with ZeRO split over the batch
//                                   axes too), all else is whole: flax's boxes, praxis' weights and
//                                   the tutorial's shard_map carry the specs over
//
// Names are those of optax.adam, optax.adamw and optax.sgd alone; in a chain another number stands
// for the 0.
#pragma once

#include <string>

#include "strategies/spec_table.hpp"

namespace shardsim {

enum class StateOptimizer : std::uint8_t {
  sgd,       // no state
  momentum,  // trace
  adam       // mu, nu, count
};

// "sgd", "momentum", "adam" or "adamw", whose state is adam's; throws InputError.
[[nodiscard]] StateOptimizer parse_state_optimizer(const std::string& name, const Place& place);

// As tree_specs, with rows of the state behind those of the parameters. Throws as it does.
[[nodiscard]] SpecTable train_state_specs(const ParameterTree& tree, const Mesh& mesh,
                                          const StrategyOptions& strategy,
                                          StateOptimizer optimizer);

}  // namespace shardsim
