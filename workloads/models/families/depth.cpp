// Dense predictions of a ViT's rows (DPT, arXiv:2103.13413; Depth Anything, arXiv:2401.10891): the
// rows of four layers become pictures of four sizes, which are put together from the smallest on.
#include <algorithm>
#include <cmath>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

// States behind layers whose numbers are asked for, the class token's row first.
struct Backbone {
  std::vector<Ref> states{};
  std::int64_t hidden = 0, image = 0, patch = 0;
};

RowLayer dpt_layer(const VisionSizes& n) {
  return {.attention = {.name = "attention",
                        .heads = n.heads,
                        .q = "attention.query",
                        .k = "attention.key",
                        .v = "attention.value",
                        .o = "output.dense",
                        .q_bias = n.qkv_bias,
                        .k_bias = n.qkv_bias,
                        .v_bias = n.qkv_bias,
                        .dropout = n.attention_dropout},
          .hidden = n.hidden,
          .width = n.width,
          .activation = n.activation,
          .dropout = n.dropout};
}

Ref embedded_patches(const Config& c, Draft& d, const std::string& at, const Backbone& b,
                     double dropout) {
  Ref x = d.rows(d.convolve(patches(at + "patch_embeddings.projection", b.hidden, b.patch),
                            d.image(c.size("num_channels", 3))));
  x = d.before(at + "cls_token", x);
  return d.drop(dropout, d.table(at + "position_embeddings", x));
}

Backbone own_backbone(const Config& c, Draft& d, const std::string& prefix, bool all) {
  const VisionSizes n = read_vision(c, "gelu");
  Backbone b{
      .hidden = n.hidden, .image = c.size("image_size", 384), .patch = c.size("patch_size", 16)};
  static_cast<void>(c.divided("image_size", b.image, "patch_size", b.patch));
  Ref x = embedded_patches(c, d, prefix + "embeddings.", b, n.dropout);
  auto wanted = c.integers("backbone_out_indices");
  if (wanted.empty()) wanted = {2, 5, 8, 11};
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "encoder.layer", i, "encoder");
    x = row_layer(d, dpt_layer(n), x);
    if (std::find(wanted.begin(), wanted.end(), i) != wanted.end()) b.states.push_back(x);
  }
  d.outside("neck");
  const Ref normed = d.norm(row_norm(prefix + "layernorm"), x);
  if (all) b.states = {normed};
  return b;
}

Backbone dinov2_backbone(const Config& c, Draft& d, const std::string& prefix) {
  if (c.text("model_type", "dinov2") != "dinov2") {
    c.fail("model_type", "of a backbone only \"dinov2\" is supported here");
  }
  VisionSizes n = read_vision(c, "gelu");
  if (c.flag("use_swiglu_ffn", false)) c.fail("use_swiglu_ffn", "only false is supported here");
  if (c.rate("drop_path_rate", 0) > 0) c.fail("drop_path_rate", "only 0 is supported here");
  n.width = n.hidden * c.size("mlp_ratio", 4);
  c.pass_over({"out_indices", "stage_names", "layerscale_value", "architectures"});
  Backbone b{
      .hidden = n.hidden, .image = c.size("image_size", 224), .patch = c.size("patch_size", 14)};
  Ref x = embedded_patches(c, d, prefix + "embeddings.", b, n.dropout);
  if (c.flag("use_mask_token", true)) d.stored(prefix + "embeddings.mask_token", {1, n.hidden});
  RowLayer layer = dpt_layer(n);
  layer.first_norm = "norm1";
  layer.second_norm = "norm2";
  layer.attention.q = "q_proj";
  layer.attention.k = "k_proj";
  layer.attention.v = "v_proj";
  layer.attention.o = "o_proj";
  layer.up = "mlp.fc1";
  layer.down = "mlp.fc2";
  layer.first_scale = "layer_scale1.lambda1";
  layer.second_scale = "layer_scale2.lambda1";
  layer.dropout = 0;
  auto wanted = c.texts("out_features");
  if (wanted.empty()) wanted = {"stage" + std::to_string(n.layers)};
  std::vector<Ref> states;
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "encoder.layer", i, "encoder");
    x = row_layer(d, layer, x);
    const std::string stage = "stage" + std::to_string(i + 1);
    if (std::find(wanted.begin(), wanted.end(), stage) != wanted.end()) states.push_back(x);
  }
  d.outside("neck");
  const bool normed = c.flag("apply_layernorm", true);
  if (c.flag("reshape_hidden_states", true)) {
    c.fail("reshape_hidden_states", "only false is supported here");
  }
  for (const Ref state : states) {
    b.states.push_back(normed ? d.norm(row_norm(prefix + "layernorm"), state) : state);
  }
  return b;
}

struct Neck {
  std::vector<std::int64_t> widths;
  std::vector<double> factors;
  std::int64_t hidden = 0;  // of what is put together
  std::string readout;      // what becomes of the class token's row
  bool batch_norm = false, bias = true;
  std::string activation;
  bool to_next_size = false;  // each result is as large as the next picture, not twice as large
};

Neck read_neck(const Config& c, std::vector<std::int64_t> widths, std::int64_t hidden) {
  Neck n;
  n.widths = c.sizes("neck_hidden_sizes", std::move(widths));
  n.hidden = c.size("fusion_hidden_size", hidden);
  n.factors = {4, 2, 1, 0.5};
  if (const auto factors = c.json().find("reassemble_factors")) {
    n.factors.clear();
    for (const JsonReader& factor : factors->elements()) n.factors.push_back(factor.number());
  }
  c.pass_over({"reassemble_factors"});
  if (n.factors.size() < n.widths.size()) {
    c.fail("reassemble_factors", "has not one entry for each of neck_hidden_sizes");
  }
  return n;
}

// Rows as a picture, larger or smaller by the factor.
Ref reassembled(Draft& d, const Neck& n, std::size_t i, std::int64_t hidden, Ref state) {
  const std::string number = std::to_string(i);
  Ref x = d.copied_picture(d.part({.first = 1}, state));
  const Ref token = d.part({.single = true}, state);
  if (n.readout == "project") {
    x = d.linear({.name = "readout_projects." + number + ".0", .out = hidden},
                 d.beside({d.rows(x), token}));
    x = d.picture(d.activate(n.activation, x, "readout_projects." + number + ".1"));
  } else if (n.readout == "add") {
    x = d.sum(x, token);
  }
  const Draft::In of(d, "layers." + number);
  x = d.convolve(patches("projection", n.widths[i], 1), x);
  const double factor = n.factors[i];
  if (factor == 1) return x;
  if (factor < 1) {
    return d.convolve(square("resize", n.widths[i], 3, std::llround(std::floor(1 / factor))), x);
  }
  Convolve larger = patches("resize", n.widths[i], std::llround(factor));
  larger.transposed = true;
  return d.convolve(larger, x);
}

Ref residual_unit(Draft& d, const Neck& n, const std::string& name, Ref x) {
  const Draft::In of(d, name);
  Ref out = x;
  for (const char* number : {"1", "2"}) {
    const std::string k = number;
    out = d.convolve(square("convolution" + k, n.hidden, 3, 1, n.bias),
                     d.activate("relu", out, "activation" + k));
    if (n.batch_norm) out = d.batch_norm("batch_norm" + k, out);
  }
  return d.sum(out, x);
}

// Of the first, smallest picture nothing is added: its unit does not run.
void store_residual_unit(Draft& d, const Neck& n, const std::string& name) {
  for (const char* number : {"1", "2"}) {
    const std::string at = name + ".convolution" + number;
    d.stored(at + ".weight", {n.hidden, n.hidden, 3, 3});
    if (n.bias) d.stored(at + ".bias", {n.hidden});
    if (!n.batch_norm) continue;
    const std::string norm = name + ".batch_norm" + number;
    d.stored(norm + ".weight", {n.hidden});
    d.stored(norm + ".bias", {n.hidden});
    d.stored(norm + ".running_mean", {n.hidden}, /*buffer=*/true);
    d.stored(norm + ".running_var", {n.hidden}, /*buffer=*/true);
    d.stored(norm + ".num_batches_tracked", {}, /*buffer=*/true);
  }
}

// What each stage of putting together leaves, from the smallest picture on.
std::vector<Ref> fused_pictures(Draft& d, const Neck& n, const Backbone& b) {
  const Draft::In of(d, "neck");
  std::vector<Ref> pictures;
  {
    const Draft::In stage(d, "reassemble_stage");
    for (std::size_t i = 0; i < n.widths.size(); ++i) {
      pictures.push_back(reassembled(d, n, i, b.hidden, b.states[i]));
    }
  }
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    pictures[i] = d.convolve(square("convs." + std::to_string(i), n.hidden, 3, 1, /*bias=*/false),
                             pictures[i]);
  }
  std::vector<Ref> left;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Draft::In layer(d, "fusion_stage.layers." + std::to_string(i));
    Ref x = pictures[pictures.size() - 1 - i];
    if (i > 0) {
      const Ref beside = n.to_next_size ? x : d.resize_as(x, left.back());
      x = d.sum(left.back(), residual_unit(d, n, "residual_layer1", beside));
    } else {
      store_residual_unit(d, n, "residual_layer1");
    }
    x = residual_unit(d, n, "residual_layer2", x);
    const bool last = i + 1 == pictures.size();
    x = n.to_next_size && !last ? d.resize_as(x, pictures[pictures.size() - 2 - i])
                                : d.resize({.times = 2}, x);
    left.push_back(d.convolve(patches("projection", n.hidden, 1), x));
  }
  return left;
}

Ref picked_picture(const Config& c, const std::vector<Ref>& pictures) {
  const std::int64_t count = static_cast<std::int64_t>(pictures.size());
  const std::int64_t index = c.integer("head_in_index", -1);
  if (index < -count || index >= count) c.fail("head_in_index", "is none of the pictures'");
  return pictures[static_cast<std::size_t>(index < 0 ? index + count : index)];
}

ModelSpec depth_spec(Draft& d, const Backbone& b) {
  ModelSpec spec;
  spec.network = d.finish({.side = b.image, .coarsest = b.patch, .takes_one_side = true});
  spec.head.kind = HeadKind::none;
  return spec;
}

Neck read_dpt_neck(const Config& c) {
  Neck n = read_neck(c, {96, 192, 384, 768}, 256);
  n.readout = c.text("readout_type", "project");
  n.batch_norm = c.flag("use_batch_norm_in_fusion_residual", false);
  n.bias = c.flag("use_bias_in_fusion_residual", !n.batch_norm);
  n.activation = c.activation("hidden_act", "gelu");
  return n;
}

void pass_over_dpt(const Config& c) {
  if (c.flag("is_hybrid", false))
    c.fail("is_hybrid", "a backbone of convolutions is not supported");
  c.pass_over({"backbone_out_indices",
               "readout_type",
               "reassemble_factors",
               "neck_hidden_sizes",
               "fusion_hidden_size",
               "head_in_index",
               "use_batch_norm_in_fusion_residual",
               "use_bias_in_fusion_residual",
               "add_projection",
               "use_auxiliary_head",
               "auxiliary_loss_weight",
               "semantic_loss_ignore_index",
               "semantic_classifier_dropout",
               "backbone_featmap_shape",
               "neck_ignore_stages",
               "pooler_output_size",
               "pooler_act",
               "backbone",
               "use_pretrained_backbone",
               "use_timm_backbone",
               "backbone_kwargs"});
}

ModelSpec dpt_model(const Config& c) {
  pass_over_dpt(c);
  Draft d;
  const Backbone b = own_backbone(c, d, "", /*all=*/true);
  const std::int64_t pooled = c.size("pooler_output_size", b.hidden);
  static_cast<void>(d.activate(
      c.activation("pooler_act", "tanh"),
      d.linear({.name = "pooler.dense", .out = pooled}, d.part({.single = true}, b.states[0]))));
  d.sum_loss(b.states[0]);
  return depth_spec(d, b);
}

ModelSpec dpt_depth(const Config& c) {
  pass_over_dpt(c);
  Draft d;
  const auto config = c.sub("backbone_config");
  if (config) {
    c.pass_over({"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "hidden_dropout_prob", "attention_probs_dropout_prob", "image_size", "patch_size",
                 "num_channels", "qkv_bias"});
  }
  const Backbone b =
      config ? dinov2_backbone(*config, d, "backbone.") : own_backbone(c, d, "dpt.", /*all=*/false);
  const Neck n = read_dpt_neck(c);
  if (b.states.size() != n.widths.size()) {
    c.fail("neck_hidden_sizes", "has not one entry for each layer that is read");
  }
  Ref x = picked_picture(c, fused_pictures(d, n, b));
  if (c.flag("add_projection", false)) {
    constexpr std::int64_t projected = 256;
    x = d.activate("relu", d.convolve(square("head.projection", projected, 3), x));
  }
  constexpr std::int64_t last = 32;
  x = d.resize({.times = 2}, d.convolve(square("head.head.0", n.hidden / 2, 3), x));
  x = d.activate("relu", d.convolve(square("head.head.2", last, 3), x));
  d.sum_loss(d.activate("relu", d.convolve(patches("head.head.4", 1, 1), x)));
  return depth_spec(d, b);
}

ModelSpec dpt_segmentation(const Config& c) {
  pass_over_dpt(c);
  if (c.given("backbone_config")) c.fail("backbone_config", "is not read by this class");
  Draft d;
  const Backbone b = own_backbone(c, d, "dpt.", /*all=*/false);
  const Neck n = read_dpt_neck(c);
  const std::vector<Ref> pictures = fused_pictures(d, n, b);
  const std::int64_t labels = labels_of(c);
  const auto head = [&](const std::string& name, Ref x, double dropout) {
    x = d.convolve(square(name + ".0", n.hidden, 3, 1, /*bias=*/false), x);
    x = d.drop(dropout, d.activate("relu", d.batch_norm(name + ".1", x)));
    return d.convolve(patches(name + ".4", labels, 1), x);
  };
  const Ref logits = d.resize({.times = 2}, head("head.head", picked_picture(c, pictures),
                                                 c.rate("semantic_classifier_dropout", 0.1)));
  constexpr double auxiliary_dropout = 0.1;
  if (!c.flag("use_auxiliary_head", true)) {
    c.fail("use_auxiliary_head", "only true is supported: the class's loss needs it");
  }
  const Ref auxiliary = head("auxiliary_head.head", pictures.back(), auxiliary_dropout);
  d.classes(d.resize({.to_image = true}, logits));
  d.classes(d.resize({.to_image = true}, auxiliary));
  return depth_spec(d, b);
}

ModelSpec depth_anything(const Config& c) {
  Draft d;
  const auto config = c.sub("backbone_config");
  if (!config) c.fail("backbone_config", "is missing");
  const Backbone b = dinov2_backbone(*config, d, "backbone.");
  Neck n = read_neck(c, {48, 96, 192, 384}, 64);
  n.to_next_size = true;
  if (b.states.size() != n.widths.size()) {
    c.fail("neck_hidden_sizes", "has not one entry for each layer that is read");
  }
  if (c.size("reassemble_hidden_size", 384) != b.hidden) {
    c.fail("reassemble_hidden_size", "is not the backbone's hidden_size");
  }
  if (c.size("patch_size", 14) != b.patch) c.fail("patch_size", "is not the backbone's");
  c.pass_over({"backbone", "use_pretrained_backbone", "use_timm_backbone", "backbone_kwargs"});
  Ref x = picked_picture(c, fused_pictures(d, n, b));
  x = d.resize({.to_image = true}, d.convolve(square("head.conv1", n.hidden / 2, 3), x));
  x = d.convolve(square("head.conv2", c.size("head_hidden_size", 32), 3), x);
  x = d.convolve(patches("head.conv3", 1, 1), d.activate("relu", x));
  const bool metric =
      c.choice("depth_estimation_type", "relative", {"relative", "metric"}) == "metric";
  c.pass_over({"max_depth"});
  d.sum_loss(d.scaled(d.activate(metric ? "sigmoid" : "relu", x)));
  return depth_spec(d, b);
}

}  // namespace

std::vector<Family> depth_families() {
  return {{"DPTModel", "dpt", dpt_model},
          {"DPTForDepthEstimation", "dpt", dpt_depth},
          {"DPTForSemanticSegmentation", "dpt", dpt_segmentation},
          {"DepthAnythingForDepthEstimation", "depth_anything", depth_anything}};
}

}  // namespace shardsim::models
