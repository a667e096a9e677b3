// WavLM's attention (arXiv:2110.13900): to the scores of each pair a bias of their distance is
// added, times a number that every head makes of the token that asks. The bias is looked up once,
// by the first layer, and all layers read it.
//
//   gate(x) = a (b c - 1) + 2, where a and b are sigmoids of sums of 4 of a head's 8 products
//
// PyTorch's multi_head_attention_forward multiplies it out (baddbmm), both ways.
// FLOPs of T tokens, hidden h, n heads of d, forward: 8 T h^2 + 4 n T^2 d + 16 T h.
//
// Source: transformers 5.23, modeling_wavlm.py, WavLMAttention.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

// A table of distances, of which each pair of tokens has a row: [batch, heads, sequence, keys].
struct DistanceScores {
  std::string name = "rel_attn_embed";
  std::int64_t buckets = 0;
  std::int64_t heads = 0;

  bool operator==(const DistanceScores&) const = default;
};

struct GatedDistanceAttention {
  std::int64_t heads = 0;
  double dropout = 0;  // of probabilities

  bool operator==(const GatedDistanceAttention&) const = default;
};

// `x` [batch, sequence, hidden] says how many tokens there are.
Node draw(Sketch& s, const DistanceScores& d, Node x);
Node draw(Sketch& s, const GatedDistanceAttention& a, Node x, Node distances);

}  // namespace shardsim::models
