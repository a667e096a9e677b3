// Blocks of U-Nets and autoencoders over images [b, c, h, w], under diffusers' names.
//
//   ResidualBlock   group norm, SiLU, 3 x 3, (+ the time's embedding), group norm, SiLU, 3 x 3;
//                   a 1 x 1 shortcut where channels change
//   ImageTransformer  group norm, projection to rows, blocks of attention among places, attention
//                   to the text, a gated MLP; projection back
//   halve, double   a 3 x 3 convolution of stride 2; nearest neighbours and a 3 x 3 convolution
//
// Example: Stable Diffusion 1.5's first block: 2 residual blocks and 2 transformers of 320 channels
// and 8 heads over 64 x 64 places, 4096 rows.
#pragma once

#include <string>

#include "workloads/layers/context.hpp"
#include "workloads/networks/convolution.hpp"

namespace shardsim::models {

struct ResidualBlock {
  std::int64_t out = 0;
  std::int64_t groups = 32;
  std::string activation = "silu";
  double dropout = 0;
  bool timed = true;  // reads the time's embedding

  bool operator==(const ResidualBlock&) const = default;
};

// `time`: [b, width], of blocks that are timed.
Value run(Eager& e, std::string_view name, const ResidualBlock& block, const Value& x,
          const Value& time);

struct ImageTransformer {
  std::int64_t blocks = 1;
  std::int64_t heads = 8;
  std::int64_t groups = 32;
  double dropout = 0;
  bool linear = false;     // its projections; else convolutions of 1 x 1
  bool text_only = false;  // places attend to the text twice, not to each other

  bool operator==(const ImageTransformer&) const = default;
};

// context.encoder: the text's states, [b, tokens, width].
Value run(Eager& e, std::string_view name, const ImageTransformer& transformer, const Value& x,
          Context& context);

// `one_side`: zeros are put on the right and below alone, as a copy.
Value halve(Eager& e, const Value& x, bool one_side);
Value double_size(Eager& e, const Value& x);

// linear_1, activation, linear_2: of numbers that say the time, or of pooled text.
Value embed_condition(Eager& e, std::string_view name, const Value& x, std::int64_t width,
                      std::string_view activation_module, std::string_view activation);

}  // namespace shardsim::models
