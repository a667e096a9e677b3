// A layer that is treated otherwise than its neighbours is another kind of block.
//
//   order    embedding, 4 layers of one kind, head
//   choices  0, {0, 1, 0, 1}, 0
//   after    embedding; layers 0 and 2; layers 1 and 3; head: four blocks, answered {0, 0, 1, 0}
#pragma once

#include <vector>

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Splits the kinds of layers whose instances have different numbers in `choices`, one for each
// place of Workload::order. Answers the number of every block that there is then. A kind's
// parameters and activations are there once for each new kind, under their names; its constants are
// one. The workload has its forward pass alone.
[[nodiscard]] std::vector<int> split_kinds(Workload& workload, const std::vector<int>& choices);

}  // namespace shardsim
