// The gated delta rule (arXiv:2412.06464) as flash-linear-attention runs it in training: queries,
// keys and values through one causal convolution, a decay and a step of each head, a state of
// key_dim x value_dim per head updated chunk by chunk, then a norm gated by z.
//
// Kept: what the projections read, what the convolution read and gave, decays, normed queries and
// keys, the chunk's 64 x 64 matrices, and everything of the gated norm, which is torch's operators
// in fp32. The rule itself, by formula and in no total, with chunks of c = 64:
//   T H (6 K V + 2 c (3 K + 2 V))
//
// Kimi's (arXiv:2510.26692) decays every channel of a key by itself: the decays, in fp32, come of
// two narrow products, and so does the gate behind it.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

// How the products of the stream are cut.
enum class DeltaProjections : std::uint8_t {
  qkvz_ba,    // in_proj_qkvz and in_proj_ba, of which the parts are copied (Qwen3-Next)
  qkv_z_b_a,  // in_proj_qkv, in_proj_z, in_proj_b, in_proj_a (Qwen3.5)
  each,       // q_proj, k_proj, v_proj, put together; g_proj, b_proj, a_proj (OLMo Hybrid)
  channels,   // the first three and b_proj; forget_gate.f_{a,b}_proj, g_{a,b}_proj (Kimi Linear)
  whole_channels,  // of these forget_gate.f_proj and g_proj (Ling 3)
};

struct DeltaNet {
  std::string name = "linear_attn";
  std::int64_t key_heads = 0;
  std::int64_t key_dim = 0;  // of a head
  std::int64_t value_heads = 0;
  std::int64_t value_dim = 0;
  std::int64_t kernel = 0;
  DeltaProjections projections = DeltaProjections::qkvz_ba;
  std::string norm = "norm", out = "out_proj";
  bool bounded = false;        // decays of channels through a sigmoid, not a softplus
  bool doubled_steps = false;  // up to 2, for negative eigenvalues

  [[nodiscard]] bool by_channel() const {
    return projections == DeltaProjections::channels ||
           projections == DeltaProjections::whole_channels;
  }

  bool operator==(const DeltaNet&) const = default;
};

Value run(Eager& e, const DeltaNet& net, const Value& x);

}  // namespace shardsim::models
