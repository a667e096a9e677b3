// BigBird's attention (arXiv:2007.14062) as transformers multiplies it out: blocks of tokens see
// their neighbours, the first and the last block, and a few at random; the first and last block see
// all. Sequences are multiples of a block. Those of no more than (5 + 2 r) blocks, r at random, are
// attended to in full, as are all where `blocks` is false.
//
// FLOPs of n blocks of B tokens, heads of d: 4 d B^2 (2 n + 2 (4 + r) + (n - 4) (5 + r)) a head.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct BlockAttention {
  std::string name = "attention.self";  // of the module that has the projections
  std::string out = "attention.output.dense";
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  bool bias = true;
  bool out_bias = true;
  bool blocks = true;
  std::int64_t block = 64;
  std::int64_t random = 3;
  double dropout = 0;       // of probabilities, in full attention alone
  bool casts_mask = false;  // the mask that results are multiplied by, in each layer

  bool operator==(const BlockAttention&) const = default;
};

Node draw(Sketch& s, const BlockAttention& a, Node x);
[[nodiscard]] std::string to_text(const BlockAttention& a);

}  // namespace shardsim::models
