// Which keys the queries of latent attention see (KeyIndex, workloads/layers/latent_attention.hpp):
// scores of all keys, and the largest of each query, whole on every device, without gradient.
#pragma once

#include <string>

#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {

// In the module of attention; queries of the index are made of `latent`, `rank` wide.
void choose_keys(GraphContext& c, const LatentAttention& a, const std::string& module, TensorId x,
                 TensorId latent, LabelId rank);

}  // namespace shardsim::models
