// A layer of two streams that see each other's scores: LiLT's, of words and of their places on a
// page (arXiv:2202.13669). Rows are [words, places] side by side, places a part of the words'
// width.
// Scores of both are added up, either stream's softmax is taken of the sum and weighs its own
// values; then an MLP of each. Multiplied out, both ways; BERT's names.
//
// FLOPs of T tokens, words of h and places of h / r, MLPs of w and w / r, forward:
// (1 + 1/r^2) (8 T h^2 + 4 T h w) + (1 + 1/r) 4 T^2 h.
//
// Source: transformers 5.23, modeling_lilt.py. The module's streams lie apart; what is kept of them
// is as much.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct CoupledLayer {
  std::int64_t heads = 0;
  std::int64_t shrink = 4;  // of places
  std::int64_t width = 0;   // of the words' MLP
  std::string activation = "gelu";
  double dropout = 0;
  double attention_dropout = 0;
  bool last = false;  // nobody reads what it makes of places: nothing of it is taken back

  bool operator==(const CoupledLayer&) const = default;
};

Node draw(Sketch& s, const CoupledLayer& l, Node x);

}  // namespace shardsim::models
