// Which parameters are gathered and given back at each module of a step whose order is known, as
// DeepSpeed's ZeRO 3 does it from its second step on. On entering a module, as in
// deepspeed/runtime/zero/partitioned_param_coordinator.py (0.19.8):
//
//   now       its own parameters that are not there, in one call
//   ahead     those that are used next, until the call has `prefetch_elements`, while fewer than
//             `live_elements` are there
// and on leaving it
//   released  its own, unless a call ahead has passed over a later use of them because they were
//             there, or they are used again within the next `reuse_elements`
//
// Example, Llama-3.1-8B, 50,000,000 ahead: on entering the root the embedding alone (525 million),
// on entering the model q, k, v, o and gate of layer 0 (100.7 million), then up, then down, ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strategies/runtime/module_walk.hpp"
#include "strategies/runtime/runtime.hpp"

namespace shardsim {

struct Fetch {  // numbers of parameters
  std::vector<std::size_t> now, ahead, released;
};

// One for each step. `elements` of every parameter of the walk.
[[nodiscard]] std::vector<Fetch> plan_fetches(const ModuleWalk& walk,
                                              const std::vector<std::int64_t>& elements,
                                              const FlatParameters& rule);

}  // namespace shardsim
