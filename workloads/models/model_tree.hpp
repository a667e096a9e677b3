// The parameters of a model as its description alone gives them: those of the workload that is
// built from it, every layer's by name.
//
//   model.layers.{}.self_attn.q_proj.weight, 32 times  ->  model.layers.0.self_attn.q_proj.weight,
//   ...
//
// Elements have the description's "torch_dtype" (or "dtype", as newer files call it); float32, the
// default of both PyTorch and flax, when it says none.
#pragma once

#include "workloads/files/parameter_tree.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {

// Throws InputError as build_workload does.
[[nodiscard]] ParameterTree model_tree(const ModelConfig& config);

}  // namespace shardsim
