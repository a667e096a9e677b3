// What JAX refuses because its shards would not all be of one size, by the rule of the system in
// use, and what the FSDP tutorial drops so that its minibatches are.
//
//   jit         a dimension of a parameter or input has to divide by the product of its axes
//   shard_map   the same, of in_specs and out_specs
//   praxis      pads its variables where they enter the program (uneven_padding.hpp); its inputs
//               are jit's
//   our own     recipes (fsdp, hsdp, ...) pad, as FSDP2 does
//
//   vocab 50257 over model=8 by match_partition_rules: jit refuses it; where it is allowed, each
//   device is priced with 6283 rows, as inside of jit
//
// Minibatches of the tutorial (accumulate_gradients): each device has batch / devices examples and
// takes as many in each as divide evenly.
//
//   136 examples over 8 devices in 4 minibatches: 17 a device, 17 // 4 = 4 in each, 1 dropped;
//   128 of 136 are computed with
//
// Source: jax-ml/jax jax/_src/pjit.py (pjit_check_aval_sharding) and shard_map.py
// (_check_specs_vs_args) at cec06d1; phlippe/uvadlc_notebooks scaling/JAX/single_gpu.py at 0da8037.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/specs/spec_table.hpp"
#include "strategies/strategy.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

// Throws RuleError (IndivisibleError) at the rule that splits the first parameter that does not
// divide, where the system refuses it. With `allow_uneven` answers a warning instead, or nothing.
[[nodiscard]] std::vector<std::string> check_even_parameters(
    const std::vector<ParameterSharding>& parameters, const std::vector<RuleUse>& rules,
    const Strategy& strategy, bool allow_uneven);

// The batch that a step computes with.
struct EnteringBatch {
  std::int64_t examples = 0;
  std::vector<std::string> warnings;
};
// Of a rule system, batch and sequence as they enter: throws as above, and InputError for
// minibatches that the system leaves without an example. `place`: where the step is written.
[[nodiscard]] EnteringBatch entering_batch(const Step& step, const Place& place,
                                           const Strategy& strategy, const Mesh& mesh,
                                           bool allow_uneven);

}  // namespace shardsim
