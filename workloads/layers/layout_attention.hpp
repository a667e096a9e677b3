// LayoutLMv3's attention (arXiv:2204.08387): scores of contents and a bias of distances in the text
// and on the page, which learns nothing; before the softmax the largest score is taken off,
// explicitly (CogView's way, arXiv:2105.13290). Multiplied out, both ways; BERT's names.
//
// FLOPs of T tokens, hidden h, n heads of d, forward: 8 T h^2 + 4 n T^2 d.
//
// Source: transformers 5.23, modeling_layoutlmv3.py, LayoutLMv3SelfAttention.
#pragma once

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct LayoutAttention {
  std::int64_t heads = 0;
  double dropout = 0;     // of probabilities
  bool distances = true;  // a bias of them

  bool operator==(const LayoutAttention&) const = default;
};

Node draw(Sketch& s, const LayoutAttention& a, Node x);

}  // namespace shardsim::models
