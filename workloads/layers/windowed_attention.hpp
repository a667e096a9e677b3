// Attention of each token with those in a window around it, as transformers' Longformer and LED
// multiply it out (arXiv:2004.05150): keys in overlapping chunks of two windows' halves w, of which
// the products' diagonals are taken, 2 w + 1 scores a token; values in chunks of three halves.
// Tokens with global attention, which have projections of their own, there are none of: the
// projections are there and do not run.
//
// FLOPs of T tokens, n heads of d, forward: 2 n d (T/w - 1) (2w)^2 + 2 n d T 3w, of which a
// window's own pairs are 4 n d T (2w + 1).
// Sequences are multiples of 2w.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct WindowedAttention {
  std::string name = "attention.self";  // of the module that has the projections
  std::string out = "attention.output.dense";
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t window = 0;  // even
  double dropout = 0;

  bool operator==(const WindowedAttention&) const = default;
};

Node draw(Sketch& s, const WindowedAttention& a, Node x);
[[nodiscard]] std::string to_text(const WindowedAttention& a);

}  // namespace shardsim::models
