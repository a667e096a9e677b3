// Collectives on a network that is a graph, by flows (network/traffic.hpp): every message on its
// links, all groups at once.
//
//   all-gather, reduce-scatter, all-reduce  ring over the group
//   all-to-all                              pairwise exchange
//   permute                                 every message at once
//
// `latency` is that of the longest way in each step, one step after the other; `transfer` is the
// rest of the simulated time: what bytes take, and waiting for links that others are on.
//
// Example: an all-gather of 1 GiB over a ring of 8, links of 50 GiB/s and 500 ns:
//   7 steps of 128 MiB: 3.5 us + 7 * 2.5 ms = 17.5035 ms
#pragma once

#include "sim/collective_cost.hpp"

namespace shardsim {

// Of a placement with a graph. Throws InputError for what takes longer than 2.5 hours or more hops
// than are simulated (network/traffic.hpp).
[[nodiscard]] CostBreakdown network_cost(const Placement& placement, const Collective& collective,
                                         Folding folding);

}  // namespace shardsim
