// ConvNeXt (arXiv:2201.03545) and its second version (arXiv:2301.00808) under transformers' names:
// patches, stages of residual layers, between stages a norm and a convolution of 2 x 2 that halves
// height and width; the mean over places, normed.
//
// A layer is a 7 x 7 convolution of each channel alone, a norm over channels, and an MLP four times
// as wide, whose result is scaled channel by channel (version 1), or whose inner channels answer to
// each other: each is multiplied by its norm over places beside the mean of all channels' (2).
//
// Example: ConvNeXt-T is 3, 3, 9 and 3 layers of 96, 192, 384 and 768 channels.
#pragma once

#include <string>
#include <vector>

#include "workloads/networks/image_step.hpp"

namespace shardsim::models {

struct ConvNextStage {
  std::int64_t width = 0;
  std::int64_t layers = 0;

  bool operator==(const ConvNextStage&) const = default;
};

struct ConvNext {
  std::string prefix = "convnext.";
  std::int64_t channels = 3;
  std::int64_t side = 224;
  std::int64_t patch = 4;
  std::string activation = "gelu";
  bool scaled = true;     // each layer's result
  bool responds = false;  // global response normalization
  double drop_path = 0;   // of the last layer; the others' rise to it
  std::vector<ConvNextStage> stages;

  bool operator==(const ConvNext&) const = default;
};

[[nodiscard]] std::int64_t coarsest(const ConvNext& net);
// The normed mean over places, [batch, width].
Value run(Eager& e, const ConvNext& net, const ImageStep& step);

}  // namespace shardsim::models
