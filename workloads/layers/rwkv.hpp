// RWKV-4's two branches (arXiv:2305.13048), which read each token beside the one before it:
//
//   mix(x; m) = m x_t + (1 - m) x_(t-1)
//   time      k, v, r = matrices of mixes; WKV of each channel, then sigmoid(r) WKV, and a matrix
//               WKV_t = (a + exp(u + k) v) / (b + exp(u + k)),  a <- exp(-w) a + exp(k) v, b alike
//   channels  sigmoid(matrix of a mix) * down(relu(up(mix))^2)
//
// WKV is one kernel in training (transformers' RwkvLinearAttention), which keeps k, v, its result
// and the decays in fp32; it counts wkv_operations a token and channel, in no total. Kept of a
// sequence: the last token that each branch read, and a, b and the largest exponent so far, fp32.
//
// Source: transformers 5.23.0, modeling_rwkv.py.
#pragma once

#include <string>

#include "workloads/layers/norm.hpp"
#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct RwkvTimeMix {
  std::int64_t width = 0;  // of keys, values and receptances

  bool operator==(const RwkvTimeMix&) const = default;
};

struct RwkvChannelMix {
  std::int64_t width = 0;

  bool operator==(const RwkvChannelMix&) const = default;
};

// A norm whose result is the stream: what enters RWKV's first layer.
struct StreamNorm {
  Norm norm{};

  bool operator==(const StreamNorm&) const = default;
};

// Two maxima, four exponentials, and of a, b and the result products, sums and a quotient.
inline constexpr std::int64_t wkv_operations = 20;

Node draw(Sketch& s, const RwkvTimeMix& m, Node x);
Node draw(Sketch& s, const RwkvChannelMix& m, Node x);
Node draw(Sketch& s, const StreamNorm& n, Node x);
[[nodiscard]] std::string to_text(const RwkvTimeMix& m);
[[nodiscard]] std::string to_text(const RwkvChannelMix& m);
[[nodiscard]] std::string to_text(const StreamNorm& n);

}  // namespace shardsim::models
