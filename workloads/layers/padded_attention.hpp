// XLM's and FlauBERT's attention: multiplied out, the softmax in fp32; scores of what is padding
// are blanked by a mask that each layer makes.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct PaddedAttention {
  std::string name;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  bool causal = false;
  double dropout = 0;

  bool operator==(const PaddedAttention&) const = default;
};

Node draw(Sketch& s, const PaddedAttention& a, Node x);
[[nodiscard]] std::string to_text(const PaddedAttention& a);

}  // namespace shardsim::models
