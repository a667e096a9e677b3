// Experts that every token visits, run while rows travel to the others and back
// (ExpertExchange::shared_beside): in which order their calls and those of the exchange are made.
//
//   forward    counts | gather of what they read | rows and weights go | first product
//   backward   sums of rows' gradients | rows' gradients return | first product back, its scatter |
//              weights' gradients return
//
// What they read is gathered outside of the product that reads it, and so kept whole.
// Source: megatron/core/transformer/moe/shared_experts.py and token_dispatcher.py, where
// set_tensor_grad_fn_sequence_sr says what backward runs as soon as it can.
#pragma once

#include <set>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// What they read; empty where they do not run so.
[[nodiscard]] std::set<TensorId> inputs_beside(const Workload& workload, const Layout& layout);

void order_beside(const Workload& workload, const Layout& layout, SpmdStep& step);

}  // namespace shardsim
