// LFM2's gated short convolution: B, C and x of one projection; out(C * conv(B * x)), the
// convolution depthwise, causal and a few tokens long, as causal_conv1d's kernel: no FLOPs of
// ATen, its input kept.
//
// Example: LFM2 1.2B, T = 4096, h = 2048: kept are the input (2Th), B, C and x (6Th), B * x, the
// convolution's result and what the output projection reads (2Th each). Cached: `kernel` tokens.
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

struct ShortConvolution {
  std::string name = "conv";
  std::int64_t kernel = 0;
  bool bias = false;
  bool padded =
      false;  // torch's own, over zeros at both ends, whose operations are counted (LFM 3)

  bool operator==(const ShortConvolution&) const = default;
};

Value run(Eager& e, const ShortConvolution& convolution, const Value& x);

}  // namespace shardsim::models
