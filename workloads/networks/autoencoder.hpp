// The autoencoder of latent diffusion, diffusers' AutoencoderKL: an encoder whose levels halve the
// image, a middle with attention of one head over all places, mean and variance of the latents; a
// decoder back, whose levels have a block more. A step encodes an image and decodes the mean.
//
// Example: Stable Diffusion's: 512 x 512 x 3 to 64 x 64 x 4 over levels of 128, 256, 512 and 512.
#pragma once

#include <string>
#include <vector>

#include "workloads/networks/image_step.hpp"

namespace shardsim::models {

struct Autoencoder {
  std::int64_t in = 3;
  std::int64_t out = 3;
  std::int64_t latents = 4;
  std::int64_t side = 512;
  std::int64_t groups = 32;
  std::int64_t blocks = 2;  // of a level
  std::string activation = "silu";
  bool attention = true;    // in the middles
  bool quantized = true;    // a 1 x 1 convolution of mean and variance
  bool unquantized = true;  // and of what is decoded
  std::vector<std::int64_t> widths;

  bool operator==(const Autoencoder&) const = default;
};

[[nodiscard]] std::int64_t coarsest(const Autoencoder& net);
Value run(Eager& e, const Autoencoder& net, const ImageStep& step);

}  // namespace shardsim::models
