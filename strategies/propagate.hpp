// Propagation: from the shardings that are given to one for every value of the forward pass.
//
// Workflow, until nothing changes: for each op, the shardings of its operands and results are
// projected on its factors; factors merge what the tensors say; values that are still open take
// what their factors have got. Pinned values and parameters never change. Two rounds: first only
// inputs and pinned activations speak, then parameters too (data before weights). Within a round an
// axis that is already on one factor of an op or one dimension of a value does not move to another:
// first come, first served, ops in program order.
//
// Gradients and recomputed values take the sharding of the forward value they belong to.
//
// Example, tp over model: gate_proj.weight [model, -] speaks for factor ffn, so the gate
// activation becomes [-, -, model]; silu and product pass it on; down_proj sums over ffn, so its
// result is a partial sum over model: the partitioner reduces it.
#pragma once

#include <vector>

#include "strategies/assign.hpp"
#include "strategies/projection.hpp"

namespace shardsim {

// One sharding per tensor of the workload, over its dimensions (parameters: as computed with). No
// entry is partial.
[[nodiscard]] std::vector<Sharding> propagate(const Workload& workload, const Assignment& assignment);

}  // namespace shardsim
