// Models over images that are no stack of like layers on one stream of rows: convolutions whose
// places and channels change from stage to stage, windows, U-Nets whose ends read their beginnings,
// two streams that attend to each other (blueprint.hpp).
//
//   Network net = UNet{...};
//   run(e, net, {.batch = 1, .side = usual_side(net), .text = usual_text(net)});
#pragma once

#include <string>
#include <variant>

#include "workloads/networks/autoencoder.hpp"
#include "workloads/networks/blueprint.hpp"
#include "workloads/networks/convnext.hpp"
#include "workloads/networks/resnet.hpp"
#include "workloads/networks/swin.hpp"
#include "workloads/networks/unet.hpp"

namespace shardsim::models {

using Network = std::variant<ResNet, ConvNext, Swin, UNet, Autoencoder, Blueprint>;

// The side of the images that the configuration names, and what a side has to be a multiple of.
[[nodiscard]] std::int64_t usual_side(const Network& network);
[[nodiscard]] std::int64_t coarsest(const Network& network);
// Tokens of the text that pipelines of diffusers put beside an image; 0 where none is read.
[[nodiscard]] std::int64_t usual_text(const Network& network);

// "images of 64 x 64", "21 frames of 60 x 104" where its pictures are so high.
[[nodiscard]] std::string pictures_text(const Network& network, std::int64_t side);

// Whether it reads sounds, of as many samples as a sequence is long.
[[nodiscard]] bool reads_samples(const Network& network);
// Whether it looks up words beside an image, as many as a sequence is long.
[[nodiscard]] bool reads_words(const Network& network);

Value run(Eager& e, const Network& network, const ImageStep& step);

// Stages, levels, blocks, a line each.
[[nodiscard]] std::string to_text(const Network& network);

}  // namespace shardsim::models
