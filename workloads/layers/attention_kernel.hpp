// softmax(q k^T) v as one kernel, and as PyTorch operators.
//
//   flash      keeps q, k, v, out and a logsumexp [batch, heads, queries] in fp32, with 24 bytes of
//              random state; keys and values of grouped heads are not repeated. For q and v of one
//              size up to 256, nothing added to the scores.
//   efficient  for the others: keys and values repeated for each query head, logsumexp padded to 32
//              queries, and what is added to the scores
//   plain      the probabilities: fp32 of the softmax and a copy in bf16, 6 bytes a score; soft
//              caps and dropout keep more
//
// FLOPs: 2 b h s k (d + v) forward; backward of a kernel computes the scores again.
// Example: Llama 3.1 8B, b = 1, s = 4096: 4 * 32 * 4096^2 * 128 = 275 GFLOP a layer.
#pragma once

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

struct ScoreRules {
  double soft_cap = 0;       // tanh(scores / cap) * cap
  double dropout = 0;        // of probabilities
  bool by_heads = false;     // q lies head after head, and so does flash's result: it is copied
  bool sinks = false;        // one more score per head
  bool fp32_softmax = true;  // of plain attention: the softmax in fp32, then cast back
  bool fp32_scores = false;  // of plain attention: q and k cast before their product
  bool plain_only = false;   // the module has no other attention
  bool bounded = false;      // of plain attention: a largest of scores and the least number
  bool from_bias = false;    // the product starts from it: torch's baddbmm
  bool expand_kv = false;    // key heads are seen by all, not copied
  bool heads_apart = false;  // of plain attention: nothing is copied, keys are divided by a tensor
  bool contiguous = false;   // of plain attention: all three lie head after head already
  Value bias{};              // added to the scores
};

// q [b, heads, s, d], k [b, kv, t, d], v [b, kv, t, v]; gives [b, s, heads * v].
Value run_attention_kernel(Eager& e, const Value& q, const Value& k, const Value& v,
                           const ScoreRules& rules);

}  // namespace shardsim::models
