// Differential attention (arXiv:2410.05258), (softmax(Q1 K1^T) - l softmax(Q2 K2^T)) V, as
// transformers' DiffLlama has it: two attentions of all heads, one with either half of the heads of
// values; of their results side by side the second half of the heads, times a learned number l, is
// taken from the first, and a norm without parameters follows, over two heads' width.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct DifferentialAttention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // even
  std::int64_t head_dim = 0;
  bool bias = false;
  Rotary rotary{};

  bool operator==(const DifferentialAttention&) const = default;
};

Node draw(Sketch& s, const DifferentialAttention& a, Node x);
[[nodiscard]] std::string to_text(const DifferentialAttention& a);

}  // namespace shardsim::models
