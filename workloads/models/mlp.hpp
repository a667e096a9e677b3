// A classifier of dense layers with silu between them, with flax's parameter names: the model of
// the shard_map FSDP tutorial (phlippe/uvadlc_notebooks, scaling/JAX/data_parallel.py). Our own
// description:
//
//   {"model_type": "mlp_classifier", "inputs": 784, "hidden": [512], "classes": 10}
//
//   input_dense/kernel [784, 512], input_dense/bias [512], output_dense/kernel [512, 10], ...
//
// Further hidden layers are hidden_dense_1, hidden_dense_2, ... The loss is softmax cross entropy.
// Inputs are fp32. "dropout_rate" says that the original has dropout, which is left out.
#pragma once

#include "workloads/models/build.hpp"

namespace shardsim {

[[nodiscard]] Workload build_mlp(const ModelConfig& config, const WorkloadOptions& options);

}  // namespace shardsim
