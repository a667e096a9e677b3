// PVT 2 (arXiv:2106.13797): overlapping patches; keys of places put together by a convolution or,
// with linear attention, of 7 x 7 means; MLPs with a 3 x 3 convolution of each channel.
#include "base/json.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

struct Pvt2Sizes : OverlappingStages {
  bool qkv_bias = true, linear = false;
};

Pvt2Sizes read_pvt2(const Config& c) {
  return {read_overlapping_stages(c, {8, 8, 4, 4}, 0), c.flag("qkv_bias", true),
          c.flag("linear_attention", false)};
}

// Of what keys and values are made.
Ref pvt2_reduced(Draft& d, const Pvt2Sizes& n, const OverlappingStage& stage, Ref x) {
  if (!n.linear && stage.reduction == 1) return x;
  const Draft::In of(d, "attention");
  constexpr std::int64_t pooled = 7;
  Ref picture = d.picture(x);
  if (n.linear) picture = d.pool({.largest = false, .to = pooled}, picture);
  picture = d.convolve(patches("spatial_reduction", stage.width, n.linear ? 1 : stage.reduction),
                       picture);
  const Ref rows = d.norm(row_norm("layer_norm"), d.rows(picture));
  return n.linear ? d.activate("gelu", rows) : rows;
}

Ref pvt2_block(Draft& d, const Pvt2Sizes& n, const OverlappingStage& stage, double rate, Ref x) {
  const Ref read = d.norm(row_norm("layer_norm_1"), x);
  const Ref reduced = pvt2_reduced(d, n, stage, read);
  const Ref seen = d.attend({.name = "attention",
                             .heads = stage.heads,
                             .q = "query",
                             .k = "key",
                             .v = "value",
                             .o = "proj",
                             .q_bias = n.qkv_bias,
                             .k_bias = n.qkv_bias,
                             .v_bias = n.qkv_bias,
                             .dropout = n.attention_dropout,
                             .plain = true},
                            read, reduced, reduced);
  x = d.sum(d.drop_path(rate, d.drop(n.dropout, seen)), x);
  const Ref fed = d.norm(row_norm("layer_norm_2"), x);
  const Draft::In of(d, "mlp");
  Ref inner = d.linear({.name = "dense1", .out = stage.ffn, .inner = true}, fed);
  if (n.linear) inner = d.activate("relu", inner, "relu");
  Convolve each = square("dwconv.dwconv", stage.ffn, 3);
  each.each = true;
  inner = d.activate(n.activation, d.rows(d.convolve(each, d.picture(inner))));
  inner = d.linear({.name = "dense2", .out = stage.width}, d.drop(n.dropout, inner));
  return d.sum(x, d.drop_path(rate, d.drop(n.dropout, inner)));
}

Ref pvt2_picture(const Config& c, Draft& d, const std::string& prefix) {
  const Pvt2Sizes n = read_pvt2(c);
  Ref x = d.image(c.size("num_channels", 3));
  std::int64_t block = 0;
  for (std::size_t s = 0; s < n.stages.size(); ++s) {
    const OverlappingStage& stage = n.stages[s];
    d.layer(prefix + "encoder.layers", static_cast<std::int64_t>(s), "stage");
    x = d.convolve(square("patch_embedding.proj", stage.width, stage.patch, stage.stride), x);
    x = d.norm(row_norm("patch_embedding.layer_norm"), d.rows(x));
    for (std::int64_t i = 0; i < stage.depth; ++i) {
      const Draft::In of(d, "blocks." + std::to_string(i));
      x = pvt2_block(d, n, stage, rising_rate(n.drop_path, block++, n.blocks), x);
    }
    x = d.copied_picture(d.norm(row_norm("layer_norm"), x));
  }
  d.outside("head");
  return x;
}

// The class writes two equal sides.
std::int64_t pvt2_side(const Config& c) {
  const auto value = c.json().find("image_size");
  if (!value || !value->json().is_array()) return c.size("image_size", 224);
  const auto sides = c.sizes("image_size", {224, 224});
  if (sides.size() != 2 || sides[0] != sides[1]) {
    c.fail("image_size", "is not of two equal sides");
  }
  return sides[0];
}

ModelSpec pvt2_spec(const Config& c, Draft& d) {
  c.pass_over({"out_features", "out_indices", "_out_features", "_out_indices", "stage_names"});
  ModelSpec spec;
  constexpr std::int64_t smaller = 32;
  spec.network = d.finish({.side = pvt2_side(c), .coarsest = smaller});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec pvt2_model(const Config& c) {
  Draft d;
  d.sum_loss(pvt2_picture(c, d, ""));
  return pvt2_spec(c, d);
}

ModelSpec pvt2_classifier(const Config& c) {
  Draft d;
  const Ref mean = d.mean(pvt2_picture(c, d, "pvt_v2."));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, mean));
  return pvt2_spec(c, d);
}

}  // namespace

std::vector<Family> pvt2_families() {
  return {{"PvtV2Model", "pvt_v2", pvt2_model},
          {"PvtV2ForImageClassification", "pvt_v2", pvt2_classifier}};
}

}  // namespace shardsim::models
