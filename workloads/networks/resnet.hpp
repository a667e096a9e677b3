// Residual networks (arXiv:1512.03385) under transformers' names: a stem of one convolution and a
// maximum over 3 x 3 places, stages of layers, the mean over places.
//
// A layer adds to its input, which a shortcut convolves where width or size change, two
// convolutions of 3 x 3, or three of 1, 3 and 1 whose middle ones are a quarter as wide
// (`bottleneck`). A stage's first layer halves height and width where its stride is 2.
//
// Example: ResNet-50 is 3, 4, 6 and 3 layers of 256, 512, 1024 and 2048 channels.
#pragma once

#include <string>
#include <vector>

#include "workloads/networks/image_step.hpp"

namespace shardsim::models {

struct ResNetStage {
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t stride = 2;

  bool operator==(const ResNetStage&) const = default;
};

struct ResNet {
  std::string prefix = "resnet.";
  std::int64_t channels = 3;
  std::int64_t side = 224;
  std::int64_t stem = 64;
  bool bottleneck = true;
  bool stride_first = false;  // of a bottleneck's convolutions the first has the stride
  std::string activation = "relu";
  std::vector<ResNetStage> stages;

  bool operator==(const ResNet&) const = default;
};

// A convolution with a batch norm behind it.
struct NormedConvolution {
  std::int64_t out = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
};

// Of a residual layer, one after the other; the last has no activation of its own.
[[nodiscard]] std::vector<NormedConvolution> residual_convolutions(const ResNet& net,
                                                                   std::int64_t width,
                                                                   std::int64_t stride);

// The mean over places, [batch, width].
Value run(Eager& e, const ResNet& net, const ImageStep& step);

}  // namespace shardsim::models
