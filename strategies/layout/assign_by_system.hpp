// What a rule system gives the parameters of a step: it sees the leaves of the workload's view
// (workloads/views/tree_leaves.hpp), and each parameter lies as its leaves do.
//
//   decoder/layers/mlp/wi_0/kernel [4096, 32, 14336]   P(fsdp, None, tensor)
//   is gate_proj.weight [4096, 14336] of 32 layers     [fsdp, tensor]
//
// Throws InputError: rules that tell instances of a repeated block apart, or parts of one
// parameter; that split the layers that a leaf stacks; that split nothing while some match nothing;
// and what the system itself refuses.
#pragma once

#include "strategies/layout/assign.hpp"
#include "workloads/views/tree_leaves.hpp"

namespace shardsim {

// `layout` has its parameters, whose `stored` this fills in.
void assign_by_system(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
                      Layout& layout);
// A sharding of the parameter's dimensions as one of the leaf's.
[[nodiscard]] Sharding of_leaf(const TreeLeaf& leaf, const Sharding& parameter);

}  // namespace shardsim
