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
// What is to be released where is found out once and kept (__params_to_release has a cache): in the
// first microbatch whose order is known. Of several in a step this is the second one ever, when
// parameters that stay whole are not there yet; they are fetched in that one, calls ahead end
// elsewhere, and what they pass over decides for all later ones.
//
// A frozen parameter that is read by what backward computes again stays until the module is left
// that was at work then, and goes with it (ds_recompute_parameters).
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

// Which parameters stay whole: small ones, one after the other while they are not too many in all
// (parameter_offload.py, mark_persistent_parameters).
[[nodiscard]] std::vector<bool> stay_whole(const std::vector<std::int64_t>& elements,
                                           const FlatParameters& rule);

// One for each step of the walk. `elements` of every parameter of it; `microbatches` of a step.
[[nodiscard]] std::vector<Fetch> plan_fetches(const ModuleWalk& walk,
                                              const std::vector<std::int64_t>& elements,
                                              const FlatParameters& rule,
                                              std::int64_t microbatches);

}  // namespace shardsim
