// Products of layers in a format narrower than what lies in memory: fp8, mxfp8, nvfp4, int8.
//
// Operands are cast in front of each product of a linear layer, forward and backward: it runs at
// the format's peak. So does attention, where it is said to be in fp8. Activations stay in the
// compute dtype; so do routers, the gates of shared experts, adapters, embedding and head
// (Transformer Engine's linear layers, torchtitan's Float8 filter). Parameters travel in the
// compute dtype, or, where it is said, in fp8.
#pragma once

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct NarrowProducts;

// The workload has its forward pass alone. Layers at the ends that stay wide become kinds of their
// own.
void narrow_products(Workload& workload, const NarrowProducts& products);

}  // namespace shardsim
