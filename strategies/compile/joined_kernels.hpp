// Kernels of a block that a stack has in one: what only the next one reads is in no memory.
//
//   gates     act(gate) times up, and backward all that comes of its gradient; Transformer Engine's
//             also with the weights of experts' rows
//   dropout   with the sum behind it
//
// Example: of experts' SwiGLU with f bytes of up, weights and all, Megatron moves 3 f forward and
// 8 f backward; kernel by kernel it is 7 f and 17 f.
#pragma once

#include <vector>

#include "strategies/compile/kernel_lists.hpp"
#include "strategies/partition/spmd.hpp"

namespace shardsim {

// Eager PyTorch's stay apart, but for dropout where `choice` says so. One that another does as well
// has no launch, no bytes and no operations.
void join_kernels(std::vector<Item>& body, std::vector<Value>& values, const KernelChoice& choice);

}  // namespace shardsim
