// Propagation: from the shardings that are given to one for every value of the forward pass.
//
// Workflow: for each op, the shardings of its tensors are projected on its factors; factors merge
// what the tensors say; values that are still open take what their factors have got. Pinned values
// and parameters never change. An axis that is already on one factor of an op or one dimension of a
// value does not move to another: first come, first served, ops in program order. Three rounds,
// each until nothing changes:
//   1. inputs and pinned activations speak, from operands to results; element-wise ops pass both
//      ways (as Shardy, which propagates through them first)
//   2. parameters speak too (data before weights)
//   3. every op passes both ways
// Round 3 comes last so that a sequence split of the residual stream does not reach back through a
// row-parallel matmul into attention, which the heads have split already.
//
// Recomputed values take the sharding of the forward value they repeat. So do gradients, except
// those of pinned values: they go back to how the op made the value before it was brought to its
// pin, so that an all-gather in forward is a reduce-scatter in backward; ops read the gradient of a
// pinned sum of pinned values as these lie, so that it is gathered once. The gradient that a
// look-up gives its table lies as the look-up reads the table, the sum of it with others as it is
// kept.
//
// Example, tp over model: gate_proj.weight [model, -] speaks for factor ffn, so the gate
// activation becomes [-, -, model]; silu and product pass it on; down_proj sums over ffn, so its
// result is a partial sum over model: the partitioner reduces it.
#pragma once

#include <vector>

#include "strategies/layout/assign.hpp"
#include "strategies/layout/projection.hpp"
#include "strategies/layout/tensor_shardings.hpp"

namespace shardsim {

[[nodiscard]] TensorShardings propagate(const Workload& workload, const Layout& layout);

}  // namespace shardsim
