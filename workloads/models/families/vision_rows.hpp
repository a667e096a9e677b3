// What families share that write their network down step by step (networks/blueprint.hpp).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "workloads/models/families/vision.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {

// A list with an entry for each of the file's num_encoder_blocks, or more. Throws InputError where
// it has fewer.
[[nodiscard]] std::vector<std::int64_t> by_stage(const Config& c, const std::string& key,
                                                 std::vector<std::int64_t> otherwise);

// Stages of overlapping patches whose keys are places put together, fewer and wider from stage to
// stage (SegFormer, PVT 2).
struct OverlappingStage {
  std::int64_t width = 0, depth = 0, heads = 1, reduction = 1, ffn = 0, patch = 0, stride = 0;
};
struct OverlappingStages {
  std::vector<OverlappingStage> stages;
  std::int64_t blocks = 0;
  std::string activation;
  double dropout = 0, attention_dropout = 0, drop_path = 0;
};
// `ratios` of the MLPs' widths and `drop_path` where the file does not say them.
[[nodiscard]] OverlappingStages read_overlapping_stages(const Config& c,
                                                        std::vector<std::int64_t> ratios,
                                                        double drop_path);

// What a family calls the parts of a block of them, and what it has beside.
struct OverlappingBlock {
  std::array<std::string, 2> norms;
  std::array<std::string, 2> reduction;  // the module, and its convolution
  Attend attention;                      // heads and dropout are the stage's
  std::array<std::string, 2> products;   // of the MLP
  std::string activation;
  bool drops_between = false;  // before the second product, too
};
[[nodiscard]] Ref overlapping_block(Draft& d, const OverlappingStages& n,
                                    const OverlappingStage& stage, const OverlappingBlock& block,
                                    double rate, Ref x);

// Swin's and Swin 2's stages of windows.
struct SwinBlock {
  std::int64_t width = 0, heads = 0, window = 0, ffn = 0;
  bool shifted = false, qkv_bias = true;
  double drop_path = 0, dropout = 0, attention_dropout = 0;
  std::string activation;
};
struct SwinSizes {
  std::int64_t image = 0, patch = 0, width = 0, window = 0;
  std::vector<std::int64_t> depths, heads;
  std::int64_t blocks = 0;
  double ratio = 0, drop_path = 0;
  // What blocks of the stage have in common; its windows are the caller's.
  [[nodiscard]] SwinBlock block_of(const Config& c, std::size_t stage) const;
};
[[nodiscard]] SwinSizes read_swin_sizes(const Config& c);
// The first rows of its images, normed, of which a part is dropped.
[[nodiscard]] Ref swin_patches(const Config& c, Draft& d, const SwinSizes& n,
                               const std::string& prefix);

// A product over what is left of `pooled`, of which a part is dropped, gives the classes.
void classify(const Config& c, Draft& d, double usual_dropout, Ref pooled);

// The layers of a ViT under `prefix`, as transformers names them since 5.0: "layers", "mlp.fc1".
[[nodiscard]] Ref vit_layers(Draft& d, const VisionSizes& n, const std::string& prefix, Ref x);

// Segment Anything's, of the configuration of its images. `mlp_dim` where the file does not say it;
// 0: it follows from the ratio.
[[nodiscard]] Blueprint sam_encoder(const Config& c, const std::string& prefix,
                                    std::int64_t mlp_dim = 0);

}  // namespace shardsim::models
