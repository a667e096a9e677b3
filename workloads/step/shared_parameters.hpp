// Parameters that more than one block reads: a tied table, of the embedding and of the head.
//
// In a pipeline these are in different stages, on different devices. Each has a copy then: of the
// same shape, with a gradient and an optimizer state of its own, and before the optimizer's step
// the gradients of both are added up (Megatron-Core, finalize_model_grads), which is the runtime's.
#pragma once

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Gives every block that is no layer and reads a parameter of another such block a copy of it
// (Tensor::copy_of). The workload has its forward pass alone.
void copy_shared_parameters(Workload& workload);

}  // namespace shardsim
