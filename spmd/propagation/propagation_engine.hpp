// Shardy's passes over the graph: axes travel until nothing changes, first where it costs least.
//
//   for each user priority that occurs, 0 first     dimensions of a later priority are closed till
//                                                   then, and their axes kept from their tensor
//     for each op priority 0..4                     see directions_of in propagation_graph.cpp
//       returned values <-> results of the function
//       visit steps, first to last; a step that changes a slot wakes the steps around it, which are
//         visited next, last woken first; again from the start until nothing changes
//       returned values <-> results of the function
//
// Complexity: a step is visited again only when one of its slots changed since; each slot changes
// at most (axes of the mesh and their parts) times.
// Source: openxla/shardy user_priority_propagation.cc, op_priority_propagation.cc,
// basic_propagation.cc, and MLIR's greedy rewrite driver for the order.
#pragma once

#include "spmd/propagation/propagation_graph.hpp"

namespace shardsim::spmd {

void run_propagation(PropagationGraph& graph, const Meshes& meshes);

}  // namespace shardsim::spmd
