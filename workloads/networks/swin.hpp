// Swin (arXiv:2103.14030) under transformers' names: patches as rows; stages of blocks that attend
// within windows of w x w patches, every other block's windows shifted by w / 2; a learned bias of
// the (2w - 1)^2 distances in a window for each head; between stages 2 x 2 patches become one,
// twice as wide.
//
// In training every block but the first drops its attention for some examples (stochastic depth):
// one number for each example is kept. Blocks that shift have a mask of windows added to the bias:
// [windows, heads, w^2, w^2] instead of [heads, w^2, w^2].
//
// Example: Swin-B at 224: 56 x 56 patches of 128; stages of 2, 2, 18 and 2 blocks, 7 x 7 windows.
#pragma once

#include <string>
#include <vector>

#include "workloads/networks/image_step.hpp"

namespace shardsim::models {

struct SwinStage {
  std::int64_t blocks = 0;
  std::int64_t heads = 0;

  bool operator==(const SwinStage&) const = default;
};

struct Swin {
  std::string prefix = "swin.";
  std::int64_t channels = 3;
  std::int64_t side = 224;
  std::int64_t patch = 4;
  std::int64_t width = 96;  // of the first stage
  std::int64_t window = 7;
  double mlp_ratio = 4;
  std::string activation = "gelu";
  bool qkv_bias = true;
  bool positions = false;  // a learned table of all patches
  double drop_path = 0.1;  // of the last block; the others' rise to it
  double dropout = 0;
  double attention_dropout = 0;
  std::vector<SwinStage> stages;

  bool operator==(const Swin&) const = default;
};

// The mean of the normed last rows, [batch, width].
Value run(Eager& e, const Swin& net, const ImageStep& step);

}  // namespace shardsim::models
