// RT-DETR (arXiv:2304.08069): a residual network whose last picture's places attend to each other,
// pictures of three sizes put together downwards and upwards again, of whose places those with the
// largest scores are queries; a decoder of deformable attention, whose every layer moves the boxes.
//
// Names and defaults as in transformers 5.23, modeling_rt_detr.py, modeling_rt_detr_v2.py and
// modeling_rt_detr_resnet.py.
// Queries that are made of noised labels are left out: how many there are is the labels' affair.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/models/families/backbone_stages.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// A convolution without a bias, a norm, which learns or does not, and an activation.
struct ConvolvedNorm {
  std::string convolution = "convolution", norm = "normalization";
  bool frozen = false;
};

Ref convolved(Draft& d, const ConvolvedNorm& names, const std::string& at, std::int64_t out,
              std::int64_t kernel, std::int64_t stride, const std::string& activation, Ref x) {
  const Draft::In of(d, at);
  x = d.convolve(square(names.convolution, out, kernel, stride, /*bias=*/false), x);
  x = names.frozen ? d.frozen_norm(names.norm, x) : d.batch_norm(names.norm, x);
  return activation.empty() ? x : d.activate(activation, x, "activation");
}

struct RtResNet {
  ConvolvedNorm names;
  std::string activation;
  bool bottleneck = true, stride_first = false;
};

Ref rt_resnet_layer(Draft& d, const RtResNet& n, std::int64_t from, std::int64_t out,
                    std::int64_t stride, bool first, Ref x) {
  constexpr std::int64_t reduction = 4;
  Ref y = x;
  if (n.bottleneck) {
    const std::int64_t narrow = out / reduction;
    y = convolved(d, n.names, "layer.0", narrow, 1, n.stride_first ? stride : 1, "relu", y);
    y = convolved(d, n.names, "layer.1", narrow, 3, n.stride_first ? 1 : stride, "relu", y);
    y = convolved(d, n.names, "layer.2", out, 1, 1, "", y);
  } else {
    y = convolved(d, n.names, "layer.0", out, 3, stride, "relu", y);
    y = convolved(d, n.names, "layer.1", out, 3, 1, "", y);
  }
  // Halved by means of 2 x 2 places; a basic layer of as many channels by the convolution's step.
  const bool halves = n.bottleneck ? stride == 2 : first && from != out;
  const bool projects = n.bottleneck ? from != out || stride != 1 : first;
  if (halves) x = d.pool({.kernel = {2, 2}, .stride = {2, 2}, .largest = false}, x);
  if (projects) {
    x = convolved(d, n.names, halves ? "shortcut.1" : "shortcut", out, 1, halves ? 1 : stride, "",
                  x);
  }
  return d.activate(n.activation, d.sum(y, x), "activation");
}

// Pictures of the stages that the file names.
StagePictures rt_resnet_pictures(const Config& c, Draft& d, const std::string& prefix,
                                 bool frozen) {
  if (c.text("model_type", "rt_detr_resnet") != "rt_detr_resnet") {
    c.fail("model_type", "of a backbone only \"rt_detr_resnet\" is supported");
  }
  RtResNet n{.names = {.frozen = frozen}, .activation = c.activation("hidden_act", "relu")};
  n.bottleneck = c.choice("layer_type", "bottleneck", {"bottleneck", "basic"}) == "bottleneck";
  n.stride_first = c.flag("downsample_in_bottleneck", false);
  const std::vector<std::int64_t> widths = c.sizes("hidden_sizes", {256, 512, 1024, 2048});
  const std::vector<std::int64_t> depths = c.sizes("depths", {3, 4, 6, 3});
  if (widths.size() != depths.size()) c.fail("depths", "has not one entry for each hidden size");
  std::int64_t width = c.size("embedding_size", 64);
  Ref x = d.image(c.size("num_channels", 3));
  const std::string stem = prefix + "embedder.embedder.";
  x = convolved(d, n.names, stem + "0", width / 2, 3, 2, n.activation, x);
  x = convolved(d, n.names, stem + "1", width / 2, 3, 1, n.activation, x);
  x = convolved(d, n.names, stem + "2", width, 3, 1, n.activation, x);
  x = d.pool({.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, x);
  const bool first_halves = c.flag("downsample_in_first_stage", false);
  StagePictures all{.widths = widths};
  for (std::size_t s = 0; s < widths.size(); ++s) {
    d.layer(prefix + "encoder.stages", static_cast<std::int64_t>(s), "stage");
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      const Draft::In of(d, fmt::format("layers.{}", i));
      const std::int64_t stride = i == 0 && (s > 0 || first_halves) ? 2 : 1;
      x = rt_resnet_layer(d, n, width, widths[s], stride, i == 0, x);
      width = widths[s];
    }
    all.pictures.push_back(x);
  }
  d.outside("neck");
  return wanted_of(c, all);
}

struct RtDetr {
  std::int64_t hidden = 0, heads = 0, width = 0, layers = 0;  // of the encoder
  std::int64_t model = 0, decoder_heads = 0, decoder_width = 0, decoder_layers = 0;
  std::int64_t levels = 0, points = 0, queries = 0, inner = 0;
  std::string activation, encoder_activation, decoder_activation;
  double dropout = 0, attention_dropout = 0, inner_dropout = 0;
  bool second = false;  // RT-DETR v2 (arXiv:2407.17140), whose points have a scale
};

RtDetr read_rt_detr(const Config& c) {
  RtDetr n{.hidden = c.size("encoder_hidden_dim", 256),
           .heads = c.size("encoder_attention_heads|num_attention_heads", 8),
           .width = c.size("encoder_ffn_dim", 1024),
           .layers = c.count("encoder_layers", 1),
           .model = c.size("d_model|hidden_size", 256),
           .decoder_heads = c.size("decoder_attention_heads", 8),
           .decoder_width = c.size("decoder_ffn_dim", 1024),
           .decoder_layers = c.layers("decoder_layers", 6),
           .levels = c.size("num_feature_levels", 3),
           .points = c.size("decoder_n_points", 4),
           .queries = c.size("num_queries", 300),
           .activation = c.activation("activation_function", "silu"),
           .encoder_activation = c.activation("encoder_activation_function", "gelu"),
           .decoder_activation = c.activation("decoder_activation_function", "relu"),
           .dropout = c.rate("dropout", 0),
           .attention_dropout = c.rate("attention_dropout", 0),
           .inner_dropout = c.rate("activation_dropout", 0),
           .second = c.text("model_type", "rt_detr") == "rt_detr_v2"};
  if (n.second && c.size("decoder_n_levels", 3) != n.levels) {
    c.fail("decoder_n_levels", "is not num_feature_levels");
  }
  if (c.text("decoder_method", "default") != "default") {
    c.fail("decoder_method", "only \"default\" is supported");
  }
  n.inner =
      static_cast<std::int64_t>(static_cast<double>(n.hidden) * c.ratio("hidden_expansion", 1));
  static_cast<void>(c.divided("encoder_hidden_dim", n.hidden, "encoder_attention_heads", n.heads));
  static_cast<void>(c.divided("d_model", n.model, "decoder_attention_heads", n.decoder_heads));
  for (const char* key : {"normalize_before", "learn_initial_query"}) {
    if (c.flag(key, false)) c.fail(key, "only false is supported");
  }
  if (c.given("anchor_image_size")) c.fail("anchor_image_size", "is not supported");
  c.pass_over({"feat_strides",
               "positional_encoding_temperature",
               "eval_size",
               "batch_norm_eps",
               "initializer_bias_prior_prob",
               "label_noise_ratio",
               "box_noise_scale",
               "disable_custom_kernels",
               "with_box_refine",
               "matcher_alpha",
               "matcher_gamma",
               "matcher_class_cost",
               "matcher_bbox_cost",
               "matcher_giou_cost",
               "use_focal_loss",
               "auxiliary_loss",
               "focal_loss_alpha",
               "focal_loss_gamma",
               "weight_loss_vfl",
               "weight_loss_bbox",
               "weight_loss_giou",
               "eos_coefficient",
               "decoder_offset_scale"});
  return n;
}

const ConvolvedNorm neck_names = {.convolution = "conv", .norm = "norm"};

// A picture whose halves go through blocks and past them.
Ref rt_partial_stage(Draft& d, const RtDetr& n, const std::string& name, Ref x) {
  const Draft::In of(d, name);
  constexpr int blocks = 3;
  Ref through = convolved(d, neck_names, "conv1", n.inner, 1, 1, n.activation, x);
  for (int i = 0; i < blocks; ++i) {
    const Draft::In block(d, fmt::format("bottlenecks.{}", i));
    const Ref wide = convolved(d, neck_names, "conv1", n.inner, 3, 1, "", through);
    const Ref narrow = convolved(d, neck_names, "conv2", n.inner, 1, 1, "", through);
    through = d.activate(n.activation, d.sum(wide, narrow), "activation");
  }
  const Ref past = convolved(d, neck_names, "conv2", n.inner, 1, 1, n.activation, x);
  const Ref sum = d.sum(through, past);
  if (n.inner == n.hidden) return sum;
  return convolved(d, neck_names, "conv3", n.hidden, 1, 1, n.activation, sum);
}

Ref rt_attention(Draft& d, const std::string& name, std::int64_t heads, double dropout, Ref placed,
                 Ref x) {
  return d.attend({.name = name, .heads = heads, .dropout = dropout}, placed, placed, x);
}

Ref rt_mlp(Draft& d, const RtDetr& n, std::int64_t width, std::int64_t out,
           const std::string& activation, Ref x) {
  Ref inner = d.linear({.name = "mlp.fc1", .out = width, .inner = true}, x);
  inner = d.drop(n.inner_dropout, d.activate(activation, inner));
  inner = d.drop(n.dropout, d.linear({.name = "mlp.fc2", .out = out}, inner));
  return d.norm(row_norm("final_layer_norm"), d.sum(x, inner));
}

// Places of one picture attend to each other.
Ref rt_intra_scale(Draft& d, const RtDetr& n, const std::string& prefix, Ref picture) {
  Ref x = d.rows(picture);
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "layers", i, "encoder");
    const Ref out =
        rt_attention(d, "self_attn", n.heads, n.dropout, d.constant_table("places", x), x);
    x = d.norm(row_norm("self_attn_layer_norm"), d.sum(x, d.drop(n.dropout, out)));
    x = rt_mlp(d, n, n.width, n.hidden, n.encoder_activation, x);
  }
  d.outside("pyramid");
  return d.copied_picture(x);
}

// Downwards and upwards again; the largest picture first.
std::vector<Ref> rt_pyramid(const Config& c, Draft& d, const RtDetr& n, const std::string& prefix,
                            std::vector<Ref> maps) {
  std::vector<std::int64_t> attended = c.integers("encode_proj_layers");
  if (!c.given("encode_proj_layers")) attended = {2};
  for (std::size_t i = 0; i < attended.size() && n.layers > 0; ++i) {
    const auto at = static_cast<std::size_t>(attended[i]);
    if (attended[i] < 0 || at >= maps.size()) c.fail("encode_proj_layers", "names no picture");
    maps[at] = rt_intra_scale(d, n, fmt::format("{}aifi.{}.", prefix, i), maps[at]);
  }
  const std::size_t last = maps.size() - 1;
  std::vector<Ref> down{maps[last]};
  for (std::size_t i = 0; i < last; ++i) {
    const std::string number = std::to_string(i);
    down.back() = convolved(d, neck_names, fmt::format("{}lateral_convs.{}", prefix, number),
                            n.hidden, 1, 1, n.activation, down.back());
    const Ref both = d.beside({d.resize({.times = 2}, down.back()), maps[last - i - 1]});
    down.push_back(rt_partial_stage(d, n, fmt::format("{}fpn_blocks.{}", prefix, number), both));
  }
  std::reverse(down.begin(), down.end());
  std::vector<Ref> up{down.front()};
  for (std::size_t i = 0; i < last; ++i) {
    const std::string number = std::to_string(i);
    const Ref halved =
        convolved(d, neck_names, fmt::format("{}downsample_convs.{}", prefix, number), n.hidden, 3,
                  2, n.activation, up.back());
    up.push_back(rt_partial_stage(d, n, fmt::format("{}pan_blocks.{}", prefix, number),
                                  d.beside({halved, down[i + 1]})));
  }
  return up;
}

// Products with what is between them.
Ref rt_head(Draft& d, const std::string& name, std::vector<std::int64_t> widths, Ref x) {
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string layer = fmt::format("{}.layers.{}", name, i);
    x = d.linear({.name = layer, .out = widths[i]}, x);
    if (i + 1 < widths.size()) x = d.activate("relu", x, layer + ".act");
  }
  return x;
}

constexpr std::int64_t corners = 4;

// All pictures' places as rows.
Ref rt_memory(const Config& c, Draft& d, const RtDetr& n, const std::string& prefix,
              const std::vector<Ref>& maps) {
  const std::vector<std::int64_t> widths = c.sizes("decoder_in_channels", {256, 256, 256});
  if (widths.size() != maps.size() ||
      std::any_of(widths.begin(), widths.end(), [&](auto width) { return width != n.hidden; })) {
    c.fail("decoder_in_channels", "are not encoder_hidden_dim for each picture");
  }
  if (n.levels < static_cast<std::int64_t>(maps.size())) {
    c.fail("num_feature_levels", "is less than there are pictures");
  }
  if (n.levels > static_cast<std::int64_t>(maps.size()) + 1) {
    c.fail("num_feature_levels", "more than one picture beside the backbone's is not supported");
  }
  std::vector<Ref> rows;
  for (std::int64_t i = 0; i < n.levels; ++i) {
    const bool further = static_cast<std::size_t>(i) >= maps.size();
    const Ref map = further ? maps.back() : maps[static_cast<std::size_t>(i)];
    rows.push_back(d.rows(convolved(d, {.convolution = "0", .norm = "1"},
                                    fmt::format("{}decoder_input_proj.{}", prefix, i), n.model,
                                    further ? 3 : 1, further ? 2 : 1, "", map)));
  }
  return rows.size() > 1 ? d.behind(rows) : rows.front();
}

struct RtQueries {
  Ref rows = 0, boxes = 0;  // boxes before the sigmoid
};

// Rows of the memory with the largest scores, and boxes of them.
RtQueries rt_queries(const Config& c, Draft& d, const RtDetr& n, const std::string& prefix,
                     Ref memory, bool learns) {
  const Ref rows =
      d.norm(row_norm(prefix + "enc_output.1"),
             d.linear({.name = prefix + "enc_output.0", .out = n.model}, d.scaled(memory)));
  const Ref scores = d.linear({.name = prefix + "enc_score_head", .out = labels_of(c)}, rows);
  const Ref boxes = rt_head(d, prefix + "enc_bbox_head", {n.model, n.model, corners}, rows);
  const auto chosen = [&](Ref of, bool of_scores = false) {
    return d.draw({ChosenRows{n.queries, of_scores}, ""}, {of});
  };
  const Ref own = chosen(boxes);
  const Ref sure = chosen(scores, /*of_scores=*/true);
  if (learns) {
    d.sum_loss(d.activate("sigmoid", own, "enc_boxes"));
    d.sum_loss(sure);
  }
  return {d.detached(chosen(rows)), own};
}

// Of every layer's queries their classes and boxes, where a head reads them.
Ref rt_decoder(const Config& c, Draft& d, const RtDetr& n, const std::string& prefix, Ref memory,
               const RtQueries& queries, bool heads) {
  const std::string decoder = prefix + "decoder.";
  Ref x = queries.rows;
  Ref boxes = d.activate("sigmoid", d.detached(queries.boxes), "first_boxes");
  const DeformableAttention attention{n.decoder_heads, n.levels, n.points, n.second};
  for (std::int64_t i = 0; i < n.decoder_layers; ++i) {
    d.outside(fmt::format("places_{}", i));
    const Ref places = rt_head(d, decoder + "query_pos_head", {2 * n.model, n.model}, boxes);
    d.layer(decoder + "layers", i, "decoder");
    Ref out =
        rt_attention(d, "self_attn", n.decoder_heads, n.attention_dropout, d.sum(x, places), x);
    x = d.norm(row_norm("self_attn_layer_norm"), d.sum(x, d.drop(n.dropout, out)));
    out = d.draw({attention, "encoder_attn"}, {d.sum(x, places), memory, boxes});
    x = d.norm(row_norm("encoder_attn_layer_norm"), d.sum(x, d.drop(n.dropout, out)));
    x = rt_mlp(d, n, n.decoder_width, n.model, n.decoder_activation, x);
    if (!heads) continue;
    d.outside(fmt::format("boxes_{}", i));
    const std::string number = std::to_string(i);
    const Ref moved =
        rt_head(d, fmt::format("{}bbox_embed.{}", decoder, number), {n.model, n.model, corners}, x);
    const Ref made = d.activate("sigmoid", d.scaled(moved), "boxes_" + number);
    d.sum_loss(made);
    d.sum_loss(d.linear(
        {.name = fmt::format("{}class_embed.{}", decoder, number), .out = labels_of(c)}, x));
    boxes = d.detached(made);
    if (!n.second) continue;  // whose heads are the detector's, too
    for (const char* head : {"class_embed.", "bbox_embed."}) {
      d.alias(fmt::format("{}{}{}", decoder, head, number), head + number);
    }
  }
  d.outside("head");
  return x;
}

ModelSpec rt_detr(const Config& c, const std::string& prefix, bool heads) {
  Draft d;
  const RtDetr n = read_rt_detr(c);
  const StagePictures stages =
      rt_resnet_pictures(part(c, "backbone_config"), d, prefix + "backbone.model.",
                         c.flag("freeze_backbone_batch_norms", true));
  if (c.sizes("encoder_in_channels", {512, 1024, 2048}) != stages.widths) {
    c.fail("encoder_in_channels", "are not the widths of the backbone's pictures");
  }
  std::vector<Ref> maps;
  for (std::size_t i = 0; i < stages.pictures.size(); ++i) {
    maps.push_back(convolved(d, {.convolution = "0", .norm = "1"},
                             fmt::format("{}encoder_input_proj.{}", prefix, i), n.hidden, 1, 1, "",
                             stages.pictures[i]));
  }
  const Ref memory =
      rt_memory(c, d, n, prefix, rt_pyramid(c, d, n, prefix + "encoder.", std::move(maps)));
  if (c.count("num_denoising", 100) > 0) {
    d.stored(prefix + "denoising_class_embed.weight", {labels_of(c) + 1, n.model});
    d.note("queries that are made of noised labels are left out");
  }
  const RtQueries queries = rt_queries(c, d, n, prefix, memory, heads);
  const Ref rows = rt_decoder(c, d, n, prefix, memory, queries, heads);
  if (!heads) d.sum_loss(rows);
  c.pass_over({"num_hidden_layers"});
  ModelSpec spec;
  constexpr std::int64_t usual = 640;  // of its image processor
  constexpr std::int64_t coarsest = 32;
  spec.network = d.finish({.side = usual, .coarsest = coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec rt_detr_model(const Config& c) { return rt_detr(c, "", /*heads=*/false); }
ModelSpec rt_detr_detection(const Config& c) { return rt_detr(c, "model.", /*heads=*/true); }

}  // namespace

std::vector<Family> rt_detr_families() {
  return {{"RTDetrModel", "rt_detr", rt_detr_model},
          {"RTDetrForObjectDetection", "rt_detr", rt_detr_detection},
          {"RTDetrV2Model", "rt_detr_v2", rt_detr_model},
          {"RTDetrV2ForObjectDetection", "rt_detr_v2", rt_detr_detection}};
}

}  // namespace shardsim::models
