// The backward pass, by the rules of differentiation (gradient_rules.hpp).
#pragma once

#include "workloads/graph/op_graph.hpp"
#include "workloads/step/rematerialization.hpp"

namespace shardsim {

// Fills Block::backward for every block. Throws InputError when a name pattern matches nothing.
void add_backward(Workload& workload, const Rematerialization& rematerialization);

}  // namespace shardsim
