// Products whose results a policy of PyTorch's selective checkpointing keeps although backward
// reads none of them: eager PyTorch caches what the policy says as each operation ends, and gives
// it back when the layer is computed again; a compiled layer keeps what backward reads alone.
//
// Example: torchtitan's policy keeps every other product of a Llama layer, queries, values, gate
// and, of no use to anybody, the output of the MLP: 64 MiB a layer for 8192 tokens of 4096 in bf16.
//
// Source: PyTorch 2.9, torch/utils/checkpoint.py, _CachingTorchDispatchMode; torchtitan of 2024-12,
// parallelisms/parallelize_llama.py, _apply_ac_to_transformer_block.
#pragma once

#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"
#include "workloads/step/rematerialization.hpp"

namespace shardsim {

// `step` as partitioned: the first kernel of a layer's backward pass reads what is cached.
void hold_cached_products(const Workload& workload, const Rematerialization& policy,
                          SpmdStep& step);

}  // namespace shardsim
