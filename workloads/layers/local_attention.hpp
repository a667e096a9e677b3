// LongT5's attention (arXiv:2112.07916), multiplied out: each block of radius + 1 tokens sees
// itself and both neighbours and, where `global_block` is above 0, a sum of each so many tokens as
// well, normed and projected by the same matrices. Biases of distances are looked up in the first
// layer's tables and handed on. Tokens that fill no block are padded to one.
//
// FLOPs of T tokens, blocks of B, g sums, n heads of d: 4 n d T (3 B + g), of keys and values of
// the sums 4 g h n d, of the sums themselves 2 T g h.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct LocalAttention {
  std::string name = "layer.0.LocalSelfAttention";
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t radius = 127;
  std::int64_t global_block = 0;
  std::int64_t buckets = 0;  // of the tables, in the layer that has them
  double dropout = 0;

  bool operator==(const LocalAttention&) const = default;
};

// The bias that the stack's layers read, of the first's tables.
inline constexpr const char* local_bias = "position_bias";
Node draw_bias(Sketch& s, const LocalAttention& a);
Node draw(Sketch& s, const LocalAttention& a, Node x);
[[nodiscard]] std::string to_text(const LocalAttention& a);

}  // namespace shardsim::models
