// The backward pass, by the rules of differentiation (gradient_rules.hpp).
#pragma once

#include "workloads/graph/op_graph.hpp"
#include "workloads/step/rematerialization.hpp"

namespace shardsim {

// Fills Block::backward for every block. Layers that are rematerialized otherwise than others
// become kinds of their own; `chunks` as rematerialized_kinds takes them. Throws InputError as
// rematerialize.
void add_backward(Workload& workload, const Rematerialization& rematerialization,
                  const std::vector<std::size_t>& chunks = {});

}  // namespace shardsim
