// The U-Net of latent diffusion (arXiv:2112.10752), diffusers' UNet2DConditionModel: levels that
// halve the image on the way down, a middle, levels that double it on the way up; what every block
// on the way down leaves is put beside what a block on the way up reads. All blocks read the
// embedding of the time, transformers the states of a text.
//
// Example: Stable Diffusion 1.5: levels of 320, 640, 1280 and 1280 channels, 2 blocks each on the
// way down and 3 on the way up, transformers in all but the last; latents of 64 x 64 x 4.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/networks/image_step.hpp"
#include "workloads/networks/unet_blocks.hpp"

namespace shardsim::models {

struct UNetLevel {
  std::int64_t blocks = 0;  // residual ones
  ResidualBlock block{};
  std::optional<ImageTransformer> transformer{};  // after each of them
  std::vector<std::int64_t> depths{};             // of each transformer, where they differ

  // Behind residual block i.
  [[nodiscard]] ImageTransformer transformer_of(std::int64_t i) const {
    ImageTransformer own = *transformer;
    if (!depths.empty()) own.blocks = depths[static_cast<std::size_t>(i)];
    return own;
  }
  bool operator==(const UNetLevel&) const = default;
};

struct UNet {
  std::int64_t in = 4;
  std::int64_t out = 4;
  std::int64_t side = 64;
  std::int64_t groups = 32;
  std::string activation = "silu";
  std::int64_t time_width = 0;      // of the time's embedding
  std::int64_t text_width = 0;      // of the text's states
  std::int64_t pooled_width = 0;    // of pooled text and sizes that are added to the time; or 0
  std::int64_t guidance_width = 0;  // of an embedding of the guidance, which does not run; or 0
  std::int64_t classes = 0;         // of a table of which a row is added to the time; or 0
  std::int64_t read_width = 0;      // of states that a product makes text_width wide; or 0
  std::int64_t first_kernel = 3, last_kernel = 3;
  std::vector<UNetLevel> down;  // from the largest image to the smallest
  std::optional<UNetLevel> middle = UNetLevel{};
  std::vector<UNetLevel> up;  // and back
  double dropout = 0;

  bool operator==(const UNet&) const = default;
};

// The image's side has to divide by it.
[[nodiscard]] std::int64_t coarsest(const UNet& net);
// What is to be taken off the latents, [batch, out, side, side].
Value run(Eager& e, const UNet& net, const ImageStep& step);

}  // namespace shardsim::models
