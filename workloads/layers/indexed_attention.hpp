// Grouped attention whose queries see the blocks of keys that an index picks (MiniMax M3): heads of
// the index's queries and one of its keys, normed and turned as attention's own; the largest score
// of a block's keys is the block's. Attention computes the keys that are picked, as kernels for
// sparse attention do; the index has no gradient.
//
// Example: 16 blocks of 128 keys at 8,192 tokens: r (1 - r/2) of all pairs with r = 2,048 / 8,192.
// Source: transformers 5.23.0, modeling_minimax_m3_vl.py.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct IndexedAttention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  Rotary rotary{};
  Norm norm{};  // of queries and keys, "q_norm" and "k_norm"
  std::int64_t index_heads = 0;
  std::int64_t index_dim = 0;
  std::int64_t block = 1;   // keys
  std::int64_t blocks = 0;  // that a query sees
  std::int64_t near = 1;    // of these, its own and those before it
  double dropout = 0;

  [[nodiscard]] std::int64_t chosen() const { return block * blocks; }
  bool operator==(const IndexedAttention&) const = default;
};

Node draw(Sketch& s, const IndexedAttention& a, Node x);
[[nodiscard]] std::string to_text(const IndexedAttention& a);

}  // namespace shardsim::models
