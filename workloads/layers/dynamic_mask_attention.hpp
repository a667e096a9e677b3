// Grouped attention whose scores start from what values say of their own weight (Doge,
// arXiv:2508.02124): exp(A softplus(v W)) of each key and head of keys, copied for all queries,
// blanked where the causal mask is; of longer sequences than `kept` all but the largest are, too.
// The kernel reads it as a bias.
//
// Example: 8 heads of keys, batch 1, 2,048 tokens: 64 MiB of bias a layer in bf16.
// Source: transformers 5.23.0, modeling_doge.py.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct DynamicMaskAttention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool bias = false;
  Rotary rotary{};
  Norm norm{};  // of queries and keys, "q_norm" and "k_norm"
  std::int64_t kept = 0;
  double dropout = 0;

  bool operator==(const DynamicMaskAttention&) const = default;
};

Node draw(Sketch& s, const DynamicMaskAttention& a, Node x);
[[nodiscard]] std::string to_text(const DynamicMaskAttention& a);

}  // namespace shardsim::models
