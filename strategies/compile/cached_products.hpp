// Results that a policy of PyTorch's selective checkpointing keeps although backward reads none of
// them, of products and of calls: eager PyTorch caches what the policy says as each operation ends,
// and gives it back when the layer is computed again; a compiled layer keeps what backward reads
// alone.
//
// Example: torchtitan's policy keeps every other product of a Llama layer, queries, values, gate
// and, of no use to anybody, the output of the MLP: 64 MiB a layer for 8192 tokens of 4096 in bf16.
//
// Source: PyTorch 2.15, torch/utils/checkpoint.py, _CachingTorchDispatchMode; torchtitan 0.3.0,
// distributed/activation_checkpoint.py, _get_default_save_ops.
#pragma once

#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"
#include "workloads/step/rematerialization.hpp"

namespace shardsim {

// `step` as partitioned: calls that scatter sums, and those that exchange rows, are not repeated,
// as the policy has reduce_scatter_tensor and all_to_all_single; what goes into them is.
void keep_calls(const Workload& workload, const Rematerialization& policy, SpmdStep& step);

// `step` as partitioned: the first kernel of a layer's backward pass reads what is cached, of calls
// if these are kept.
void hold_cached_products(const Workload& workload, const Rematerialization& policy,
                          bool keeps_calls, SpmdStep& step);

}  // namespace shardsim
