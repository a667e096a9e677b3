// sdy.sharding_group: values that share a group number, or a value with another group, are one
// group; what one of them is told holds for all.
#pragma once

#include "spmd/propagation/propagation_graph.hpp"

namespace shardsim::spmd {

// Throws InputError: a group whose values are given different shardings.
void share_in_groups(const stablehlo::Module& module, const stablehlo::Function& function,
                     PropagationGraph& graph);

}  // namespace shardsim::spmd
