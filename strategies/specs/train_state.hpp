// The whole train state of a parameter tree: beside the parameters the optimizer's moments, its
// count, the step and the random key, as optax and the rule systems keep them.
//
//   parameters 0/w f32[1024, 512]; adam
//     opt_state/0/mu/0/w, opt_state/0/nu/0/w  f32[1024, 512]
//     opt_state/0/count  i32[]        step  i32[]        rng  i32[2] (of unsigned integers)
//
// Moments have the shape of their parameter, and its dtype unless another is said; so has the
// master copy, master/0/w, of a step that keeps one. How the state lies is the system's own; the
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
// Names of the optimizer's state are those of optax (state_optimizer.hpp).
#pragma once

#include <optional>

#include "strategies/specs/spec_table.hpp"
#include "strategies/specs/state_optimizer.hpp"

namespace shardsim {

// Of the state beside the parameters.
struct StateTypes {
  std::optional<DType> moments{};  // nothing: as their parameters
  std::optional<DType> master{};   // nothing: the parameters are their own master
};

// As tree_specs, with rows of the state behind those of the parameters. Throws as it does.
[[nodiscard]] SpecTable train_state_specs(const ParameterTree& tree, const Mesh& mesh,
                                          const Strategy& strategy, const StateOptimizer& optimizer,
                                          const StateTypes& types = {});

}  // namespace shardsim
