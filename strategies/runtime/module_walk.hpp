// The modules that one microbatch enters and leaves, forward and backward, as hooks on PyTorch's
// modules see them (DeepSpeed's ZeRO 3). Ops have their module's name, "{}" for the layer:
//
//   forward   enter root, model, embed_tokens; leave it; enter layers.0, input_layernorm; ...
//   backward  enter root, lm_head; leave it; enter model, norm; leave it; enter layers.31, mlp,
//             down_proj; ...
//
// A module is what reads parameters, an attention, or what holds such; others (activations,
// rotations) have none of their own.
//
// What backward computes again is entered from within the module whose backward first needs
// something that was not kept, as torch.utils.checkpoint without reentrance has it, and computed no
// further than to what that needs last. It is in that same module, which is not left again then:
//
//   backward  enter layers.31, mlp, down_proj; again layers.31, input_layernorm; leave it; ...
//             up_proj; leave it; down_proj. Leave down_proj; enter up_proj; ...
//
// A module whose input has no gradient (an embedding; a layer above frozen ones) is not seen to end
// in backward: such are left once all is through, the last that was entered first.
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
  bool enters = true;       // else it is left
  bool again = false;       // by what backward computes again
  bool at_the_end = false;  // of backward: it is left because all is through
  Phase phase = Phase::forward;
  std::size_t segment = 0;              // the pass over so many-th block instance of the phase
  std::size_t item = 0;                 // before which of its items; behind all: how many there are
  std::size_t module = 0;               // its number, the same whenever it is entered
  std::vector<std::size_t> parameters;  // that are the module's own, by number
};

struct ModuleWalk {
  std::vector<ParameterInstance> parameters;  // by number, in the order of first use
  std::vector<bool> frozen;                   // by number: it is not trained
  std::vector<ModuleStep> steps;
};

[[nodiscard]] ModuleWalk walk_modules(const Workload& workload, const SpmdStep& step);

}  // namespace shardsim
