// YOLOS (arXiv:2106.00666): a ViT whose further learned rows each find an object or none.
//
// Names and defaults as in transformers 5.23, modeling_yolos.py. Its rows stand behind the patches;
// here they stand before, which costs the same.
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

struct YolosSizes {
  VisionSizes vision;
  std::vector<std::int64_t> image;  // rows and columns
  std::int64_t patch = 0, found = 0;
};

YolosSizes read_yolos(const Config& c) {
  YolosSizes n{.vision = read_vision(c, "gelu"),
               .image = c.sizes("image_size", {512, 864}),
               .patch = c.size("patch_size", 16),
               .found = c.size("num_detection_tokens", 100)};
  if (n.image.size() != 2) c.fail("image_size", "is not [rows, columns]");
  for (const std::int64_t side : n.image) {
    if (side % n.patch != 0) c.fail("image_size", "is no multiple of patch_size");
  }
  if (c.flag("auxiliary_loss", false)) c.fail("auxiliary_loss", "only false is supported");
  c.pass_over({"class_cost", "bbox_cost", "giou_cost", "bbox_loss_coefficient",
               "giou_loss_coefficient", "eos_coefficient"});
  return n;
}

// Normed rows behind the last layer.
Ref yolos_rows(const Config& c, Draft& d, const YolosSizes& n, const std::string& prefix) {
  const std::int64_t hidden = n.vision.hidden;
  const std::string at = prefix + "embeddings.";
  Ref x = d.rows(d.convolve(patches(at + "patch_embeddings.projection", hidden, n.patch),
                            d.image(c.size("num_channels", 3), n.image[0], n.image[1])));
  x = d.before(at + "cls_token", x);
  x = d.before(at + "detection_tokens", x, n.found);
  x = d.drop(n.vision.dropout, d.table(at + "position_embeddings", x));
  if (c.flag("use_mid_position_embeddings", true)) {
    // One table behind each layer but the last, all in one parameter of the model's own unit.
    if (n.vision.layers < 3) c.fail("num_hidden_layers", "less than 3 with tables between layers");
    x = d.first_table(prefix + "encoder.interpolation.mid_position_embeddings", n.vision.layers - 1,
                      x);
    d.note("tables of positions between layers are one parameter: in a step it is added once");
  }
  const RowLayer layer{.attention = {.name = "attention",
                                     .heads = n.vision.heads,
                                     .q = "attention.query",
                                     .k = "attention.key",
                                     .v = "attention.value",
                                     .o = "output.dense",
                                     .q_bias = n.vision.qkv_bias,
                                     .k_bias = n.vision.qkv_bias,
                                     .v_bias = n.vision.qkv_bias,
                                     .dropout = n.vision.attention_dropout},
                       .hidden = hidden,
                       .width = n.vision.width,
                       .activation = n.vision.activation,
                       .dropout = n.vision.dropout};
  for (std::int64_t i = 0; i < n.vision.layers; ++i) {
    d.layer(prefix + "encoder.layer", i, "encoder");
    x = row_layer(d, layer, x);
  }
  d.outside("head");
  return d.norm(row_norm(prefix + "layernorm"), x);
}

ModelSpec yolos_spec(Draft& d, const YolosSizes& n) {
  ModelSpec spec;
  spec.network = d.finish({.side = n.image[0], .takes_one_side = true});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec yolos_model(const Config& c) {
  Draft d;
  const YolosSizes n = read_yolos(c);
  const Ref rows = yolos_rows(c, d, n, "");
  static_cast<void>(d.activate("tanh", d.linear({.name = "pooler.dense", .out = n.vision.hidden},
                                                d.part({.single = true}, rows))));
  d.sum_loss(rows);
  return yolos_spec(d, n);
}

// Its loss is of pairs that a matching on the host picks: a step's is the sum of both results.
ModelSpec yolos_detection(const Config& c) {
  Draft d;
  const YolosSizes n = read_yolos(c);
  const Ref found = d.part({.count = n.found}, yolos_rows(c, d, n, "vit."));
  const auto head = [&](const std::string& name, std::int64_t out) {
    Ref x = found;
    for (int i = 0; i < 3; ++i) {
      const std::string layer = name + ".layers." + std::to_string(i);
      x = d.linear({.name = layer, .out = i < 2 ? n.vision.hidden : out}, x);
      if (i < 2) x = d.activate("relu", x, layer + ".act");
    }
    return x;
  };
  constexpr std::int64_t corners = 4;
  d.sum_loss(head("class_labels_classifier", labels_of(c) + 1));
  d.sum_loss(d.activate("sigmoid", head("bbox_predictor", corners), "bbox_predictor.act"));
  return yolos_spec(d, n);
}

}  // namespace

std::vector<Family> yolos_families() {
  return {{"YolosModel", "yolos", yolos_model},
          {"YolosForObjectDetection", "yolos", yolos_detection}};
}

}  // namespace shardsim::models
