// Between the two halves of attention's op graph: projections and kernel (attention_graph.cpp), and
// what is added to scores (score_graph.cpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {

// Queries [b, s, heads, group, dim], keys and values [b, s, heads, dim]; `rows` are those of
// queries, which the output projection reads.
struct Projected {
  TensorId q = no_tensor, k = no_tensor, v = no_tensor;
  TensorId gate = no_tensor;
  Dim rows;
  std::vector<LabelId> q_heads, k_heads;
  LabelId head_dim = 0;
  std::optional<LabelId> value_dim{};  // of values and rows, where it is not head_dim
};

// Sinks, or a bias of distances: the stack's, or the layer's own; no_tensor where there is none.
TensorId added_to_scores(GraphContext& c, const Attention& a, const std::string& at,
                         const Projected& p);

}  // namespace shardsim::models
