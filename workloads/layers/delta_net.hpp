// The gated delta rule (arXiv:2412.06464) as flash-linear-attention runs it in training: queries,
// keys and values through one causal convolution, a decay and a step of each head, a state of
// key_dim x value_dim per head updated chunk by chunk, then a norm gated by z.
//
// Kept: what the projections read, what the convolution read and gave, decays, normed queries and
// keys, the chunk's 64 x 64 matrices, and everything of the gated norm, which is torch's operators
// in fp32. The rule itself, by formula and in no total, with chunks of c = 64:
//   T H (6 K V + 2 c (3 K + 2 V))
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

struct DeltaNet {
  std::string name = "linear_attn";
  std::int64_t key_heads = 0;
  std::int64_t key_dim = 0;  // of a head
  std::int64_t value_heads = 0;
  std::int64_t value_dim = 0;
  std::int64_t kernel = 0;
  bool fused_projections = true;  // in_proj_qkvz and in_proj_ba; else qkv, z, b and a

  bool operator==(const DeltaNet&) const = default;
};

Value run(Eager& e, const DeltaNet& net, const Value& x);

}  // namespace shardsim::models
