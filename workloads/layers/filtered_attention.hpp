// Nystromformer's attention (arXiv:2102.03902) where it has as many landmarks as segments, which is
// attention to all tokens: the module multiplies it out, without dropping anything, and adds a
// convolution of each head's values along the sequence. BERT's names.
//
// FLOPs of T tokens, hidden h, n heads of d, K taps, forward: 8 T h^2 + 4 n T^2 d + 2 T h K.
//
// Source: transformers 5.23, modeling_nystromformer.py, NystromformerSelfAttention.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct FilteredAttention {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t taps = 0;  // 0: no convolution

  bool operator==(const FilteredAttention&) const = default;
};

Node draw(Sketch& s, const FilteredAttention& a, Node x);
[[nodiscard]] std::string to_text(const FilteredAttention& a);

}  // namespace shardsim::models
