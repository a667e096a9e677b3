// XLNet's attention (arXiv:1906.08237, after Transformer-XL): scores of contents, (q + u) k, and of
// distances, (q + v) r, where r projects sines of all 2 s distances, of which each pair of tokens
// takes its own by a shift. Matrices are parameters [hidden, heads, head_dim]. Multiplied out, both
// ways. Segments, of which the module has parameters, are not told apart.
//
// FLOPs of T tokens, hidden h, n heads of d, forward: 2 T h n d (4 + 2) + 2 n T^2 d (1 + 2 + 1).
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct RelativeAttention {
  std::string name = "rel_attn";
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  double dropout = 0;  // of probabilities

  bool operator==(const RelativeAttention&) const = default;
};

Node draw(Sketch& s, const RelativeAttention& a, Node x);
[[nodiscard]] std::string to_text(const RelativeAttention& a);

}  // namespace shardsim::models
