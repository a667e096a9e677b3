// The modules that one microbatch enters and leaves, forward and backward, as hooks on PyTorch's
// modules see them (DeepSpeed's ZeRO 3). Ops have their module's name, "{}" for the layer:
//
//   forward   enter root, model, embed_tokens; leave it; enter layers.0, input_layernorm; ...
//   backward  enter root, lm_head; leave it; enter model, norm; leave it; enter layers.31, mlp,
//             down_proj; ...
//
// A module is what reads parameters, an attention, or what holds such; others (activations,
// rotations) have none of their own. What backward computes again is entered once more, first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

using ParameterInstance = std::pair<TensorId, std::int32_t>;  // and ordinal of its block

struct ModuleStep {
  bool enters = true;  // else it is left
  Phase phase = Phase::forward;
  std::size_t segment = 0;              // the pass over so many-th block instance of the phase
  std::size_t item = 0;                 // before which of its items; behind all: how many there are
  std::vector<std::size_t> parameters;  // that are the module's own, by number
};

struct ModuleWalk {
  std::vector<ParameterInstance> parameters;  // by number, in the order of first use
  std::vector<ModuleStep> steps;
};

[[nodiscard]] ModuleWalk walk_modules(const Workload& workload, const SpmdStep& step);

}  // namespace shardsim
