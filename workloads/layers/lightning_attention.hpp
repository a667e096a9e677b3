// Lightning attention (arXiv:2401.04658) as transformers' MiniMax has it: linear attention whose
// heads forget at rates of their own, in blocks of `block` tokens,
//   o = (q k^T * D) v + (q * a) S,   S <- S * exp(-r block) + (k * b)^T v,
// with tables D, a, b of the checkpoint; then a norm over all heads, a sigmoid gate of the input
// and the product out. S, head_dim^2 numbers of each head, is all that is kept of a sequence.
//
// FLOPs of T tokens in blocks of c, n heads of d: 4 n T d (c + d).
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct LightningAttention {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t block = 256;
  std::string activation = "silu";

  bool operator==(const LightningAttention&) const = default;
};

Node draw(Sketch& s, const LightningAttention& a, Node x);
[[nodiscard]] std::string to_text(const LightningAttention& a);

}  // namespace shardsim::models
