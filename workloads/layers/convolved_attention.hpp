// ConvBERT's mixed attention (arXiv:2008.02496): half of the heads attend; the other half is a
// convolution over a few neighbours whose taps are made of the token itself, a softmax of a product
// of queries times keys that a separable convolution made.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct ConvolvedAttention {
  std::int64_t heads = 0;     // of those that attend
  std::int64_t head_dim = 0;  // heads * head_dim is half of the width
  std::int64_t kernel = 9;
  double dropout = 0;

  bool operator==(const ConvolvedAttention&) const = default;
};

Node draw(Sketch& s, const ConvolvedAttention& a, Node x);
[[nodiscard]] std::string to_text(const ConvolvedAttention& a);

}  // namespace shardsim::models
