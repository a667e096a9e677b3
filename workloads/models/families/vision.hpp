// What the descriptions of transformers of images share.
#pragma once

#include <string>
#include <string_view>

#include "workloads/models/families/decoder.hpp"

namespace shardsim::models {

struct VisionSizes {
  std::int64_t hidden = 0, layers = 0, heads = 0, width = 0;
  std::string activation;
  bool qkv_bias = true;
  double dropout = 0, attention_dropout = 0;
};

[[nodiscard]] VisionSizes read_vision(const Config& c, std::string_view activation);
// Both ways, with biases.
[[nodiscard]] Attention vision_attention(const VisionSizes& n, const std::string& name,
                                         const std::string& out);
[[nodiscard]] Mlp vision_mlp(const VisionSizes& n);
// The layers; what enters and leaves is the family's.
[[nodiscard]] Stack vision_stack(const VisionSizes& n, const LayerKind& layer);
// A convolution and a class token under `at`.
[[nodiscard]] PatchEmbedding read_patches(const Config& c, const std::string& at,
                                          std::int64_t image, std::int64_t patch);
// A nested configuration that has to be there.
[[nodiscard]] Config part(const Config& c, std::string_view key);

[[nodiscard]] Stack clip_text(const Config& c, const std::string& prefix, std::int64_t places = 77);

}  // namespace shardsim::models
