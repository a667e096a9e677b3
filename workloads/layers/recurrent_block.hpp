// Griffin's recurrent block (arXiv:2402.19427): out(gelu(y) * rg_lru(conv(x))), x and y two
// projections of the stream, the convolution depthwise and a few tokens long. RG-LRU: two gates of
// x by block-diagonal matrices, a block each head, and a linear recurrence of every channel,
//   r = sigmoid(W x), i = sigmoid(V x), a = exp(-8 softplus(p) r), h <- a h + sqrt(1 - a^2) (i x).
//
// As transformers' class runs it: torch's operators, the recurrence token by token in fp32, of
// which the backward pass keeps every a and every h.
//
// Of x's T numbers of width w the recurrence with its gates' functions is 17 T w by formula, in no
// total: sigmoids 6, a 3, the root 5, gates 2, then a h + x once in fp32.
//
// Example: RecurrentGemma 2B, w = 2560, 10 heads of 256: gates of 2 * 10 * 256^2 parameters.
// Cached: kernel - 1 tokens of x, and h in fp32.
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

struct RecurrentBlock {
  std::string name = "temporal_block";
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t kernel = 0;
  std::string activation = "gelu_pytorch_tanh";

  bool operator==(const RecurrentBlock&) const = default;
};

// Operations of the recurrence for each of its numbers.
inline constexpr std::int64_t rg_lru_operations = 17;

Value run(Eager& e, const RecurrentBlock& block, const Value& x);

}  // namespace shardsim::models
