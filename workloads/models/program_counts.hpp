// What one of our own programs (vit.hpp, mlp.hpp) is made of and what a step of it costs, from its
// op graph: the figures of walk.hpp, of forward and backward pass with every tensor that the
// backward pass reads kept.
//
//   ModelCounts n = count_program(load_model_config("vit-b16", "", {}), /*batch=*/1);
#pragma once

#include "workloads/models/build.hpp"
#include "workloads/models/walk.hpp"

namespace shardsim::models {

// Throws InputError as build_workload.
[[nodiscard]] ModelCounts count_program(const ModelConfig& config, std::int64_t batch);

}  // namespace shardsim::models
