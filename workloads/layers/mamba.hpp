// State-space mixers, as the CUDA packages mamba_ssm and causal_conv1d run them in training.
//
// Mamba (arXiv:2312.00752): x and z of one projection, a causal convolution, step size, B and C of
// x, a selective scan of `state` numbers per channel. Fused, mamba_inner_fn keeps xz, x_dbl, B, C,
// scan states every 2,048 tokens and the scan's result, and makes the convolution and the step size
// again. With norms of step size, B and C (Jamba) the parts run one by one and keep their own.
//
// Mamba-2 (arXiv:2405.21060): z, x, B, C and step sizes of one projection; heads of `head_dim`, B
// and C common to a group; the fused kernel keeps the projection's result, the scan's and, of its
// gated norm, 1 / rms.
//
// A scan is no matmul of ATen and in no total: 9 T I N by formula for Mamba, for Mamba-2, in chunks
// of c tokens, T (2 c G N + 2 c I + 4 I N).
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

struct Mamba {
  std::string name = "mixer";
  std::int64_t inner = 0;   // channels
  std::int64_t state = 0;   // numbers per channel
  std::int64_t kernel = 0;  // of the convolution
  std::int64_t step_rank = 0;
  bool conv_bias = true;
  bool bias = false;   // of the projections in and out
  bool norms = false;  // of step size, B and C
  // Channels in heads, each with matrices of its own for step size, B and C, and a scan of its own;
  // x and z lie channel by channel (Zamba). 0: none.
  std::int64_t heads = 0;
  bool fixed_norms = false;  // the same without parameters, in the fused function (Falcon-Mamba)

  bool operator==(const Mamba&) const = default;
};

struct Mamba2 {
  std::string name = "mixer";
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t state = 0;
  std::int64_t groups = 1;
  std::int64_t kernel = 0;
  std::int64_t chunk = 0;
  bool conv_bias = true;
  bool bias = false;  // of the projection in
  bool out_bias = false;
  bool norm = true;                // gated, inside the kernel
  bool scaled_projection = false;  // times a fixed vector

  [[nodiscard]] std::int64_t inner() const { return heads * head_dim; }
  bool operator==(const Mamba2&) const = default;
};

Value run(Eager& e, const Mamba& mamba, const Value& x);
Value run(Eager& e, const Mamba2& mamba, const Value& x);

}  // namespace shardsim::models
