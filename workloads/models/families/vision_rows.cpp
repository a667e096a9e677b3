#include "workloads/models/families/vision_rows.hpp"

#include <utility>

#include "workloads/models/families/families.hpp"

namespace shardsim::models {

std::vector<std::int64_t> by_stage(const Config& c, const std::string& key,
                                   std::vector<std::int64_t> otherwise) {
  const auto stages = static_cast<std::size_t>(c.size("num_encoder_blocks", 4));
  std::vector<std::int64_t> values = c.sizes(key, std::move(otherwise));
  if (values.size() < stages) c.fail(key, "has not one entry for each of num_encoder_blocks");
  return values;
}

OverlappingStages read_overlapping_stages(const Config& c, std::vector<std::int64_t> ratios,
                                          double drop_path) {
  OverlappingStages n;
  const auto count = static_cast<std::size_t>(c.size("num_encoder_blocks", 4));
  const auto widths = by_stage(c, "hidden_sizes", {32, 64, 160, 256});
  const auto depths = by_stage(c, "depths", {2, 2, 2, 2});
  const auto heads = by_stage(c, "num_attention_heads", {1, 2, 5, 8});
  const auto reductions = by_stage(c, "sr_ratios", {8, 4, 2, 1});
  const auto wider = by_stage(c, "mlp_ratios", std::move(ratios));
  const auto patch = by_stage(c, "patch_sizes", {7, 3, 3, 3});
  const auto strides = by_stage(c, "strides", {4, 2, 2, 2});
  for (std::size_t s = 0; s < count; ++s) {
    static_cast<void>(c.divided("hidden_sizes", widths[s], "num_attention_heads", heads[s]));
    n.stages.push_back({widths[s], depths[s], heads[s], reductions[s], widths[s] * wider[s],
                        patch[s], strides[s]});
    n.blocks += depths[s];
  }
  n.activation = c.activation("hidden_act", "gelu");
  n.dropout = c.rate("hidden_dropout_prob", 0);
  n.attention_dropout = c.rate("attention_probs_dropout_prob", 0);
  n.drop_path = c.rate("drop_path_rate", drop_path);
  return n;
}

SwinSizes read_swin_sizes(const Config& c) {
  SwinSizes n;
  n.image = c.size("image_size", 224);
  n.patch = c.size("patch_size", 4);
  n.width = c.size("embed_dim", 96);
  n.window = c.size("window_size", 7);
  n.depths = c.sizes("depths", {2, 2, 6, 2});
  n.heads = c.sizes("num_heads|num_attention_heads", {3, 6, 12, 24});
  if (n.heads.size() != n.depths.size()) c.fail("num_heads", "has not one entry for each stage");
  for (const std::int64_t depth : n.depths) n.blocks += depth;
  n.ratio = c.ratio("mlp_ratio", 4);
  n.drop_path = c.rate("drop_path_rate", 0.1);
  return n;
}

SwinBlock SwinSizes::block_of(const Config& c, std::size_t stage) const {
  SwinBlock block{.width = width << stage,
                  .heads = heads[stage],
                  .qkv_bias = c.flag("qkv_bias", true),
                  .dropout = c.rate("hidden_dropout_prob", 0),
                  .attention_dropout = c.rate("attention_probs_dropout_prob", 0),
                  .activation = c.activation("hidden_act", "gelu")};
  static_cast<void>(c.divided("embed_dim", block.width, "num_heads", block.heads));
  block.ffn = static_cast<std::int64_t>(ratio * static_cast<double>(block.width));
  return block;
}

Ref swin_patches(const Config& c, Draft& d, const SwinSizes& n, const std::string& prefix) {
  const std::string at = prefix + "embeddings.";
  const Ref x = d.rows(d.convolve(patches(at + "patch_embeddings.projection", n.width, n.patch),
                                  d.image(c.size("num_channels", 3))));
  return d.drop(c.rate("hidden_dropout_prob", 0), d.norm(row_norm(at + "norm"), x));
}

void classify(const Config& c, Draft& d, double usual_dropout, Ref pooled) {
  const double dropout = c.rate("classifier_dropout_prob", usual_dropout);
  d.classes(
      d.linear({.name = "classifier", .out = labels_of(c)}, d.drop_in_place(dropout, pooled)));
}

Ref vit_layers(Draft& d, const VisionSizes& n, const std::string& prefix, Ref x) {
  const RowLayer layer{.attention = {.name = "attention",
                                     .heads = n.heads,
                                     .q_bias = n.qkv_bias,
                                     .k_bias = n.qkv_bias,
                                     .v_bias = n.qkv_bias,
                                     .dropout = n.attention_dropout,
                                     .fp32_softmax = true},
                       .up = "mlp.fc1",
                       .down = "mlp.fc2",
                       .hidden = n.hidden,
                       .width = n.width,
                       .activation = n.activation,
                       .dropout = n.dropout};
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "layers", i, "encoder");
    x = row_layer(d, layer, x);
  }
  d.outside("head");
  return x;
}

}  // namespace shardsim::models
