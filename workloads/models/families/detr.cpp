// DETR (arXiv:2005.12872): a residual network whose norms do not learn; its last picture's places
// as rows of an encoder; a decoder of learned queries, each of which is an object or none. Table
// Transformer (arXiv:2110.00061) is DETR with norms of what the branches read.
//
// Names and defaults as in transformers 5.23, modeling_detr.py and modeling_table_transformer.py.
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

// Names of a residual network's modules: timm's or transformers'. Of transformers' own the class
// freezes all convolutions (it asks for names with "stage.1", which none has), of timm's none.
struct BackboneNames {
  bool timm = true;

  [[nodiscard]] std::string block(std::size_t stage, std::int64_t i) const {
    const std::string number = std::to_string(i);
    return timm ? "layer" + std::to_string(stage + 1) + "." + number
                : "encoder.stages." + std::to_string(stage) + ".layers." + number;
  }
  [[nodiscard]] std::pair<std::string, std::string> convolution(int i) const {
    if (timm) return {"conv" + std::to_string(i + 1), "bn" + std::to_string(i + 1)};
    const std::string layer = "layer." + std::to_string(i);
    return {layer + ".convolution", layer + ".normalization"};
  }
  [[nodiscard]] std::pair<std::string, std::string> shortcut() const {
    if (timm) return {"downsample.0", "downsample.1"};
    return {"shortcut.convolution", "shortcut.normalization"};
  }
  [[nodiscard]] std::pair<std::string, std::string> stem() const {
    if (timm) return {"conv1", "bn1"};
    return {"embedder.embedder.convolution", "embedder.embedder.normalization"};
  }
};

struct ResidualBackbone {
  BackboneNames names;
  std::int64_t stem = 64;
  bool bottleneck = true, stride_first = false, first_halves = false;
  std::vector<std::int64_t> widths{}, depths{};
  std::string activation = "relu";
};

ResidualBackbone timm_backbone(const Config& c, const std::string& name) {
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> known = {
      {"resnet18", {2, 2, 2, 2}},
      {"resnet34", {3, 4, 6, 3}},
      {"resnet50", {3, 4, 6, 3}},
      {"resnet101", {3, 4, 23, 3}},
      {"resnet152", {3, 8, 36, 3}}};
  for (const auto& [own, depths] : known) {
    if (own != name) continue;
    ResidualBackbone b;
    b.bottleneck = name != "resnet18" && name != "resnet34";
    b.widths = b.bottleneck ? std::vector<std::int64_t>{256, 512, 1024, 2048}
                            : std::vector<std::int64_t>{64, 128, 256, 512};
    b.depths = depths;
    return b;
  }
  c.fail("backbone", "of timm's only resnet18, 34, 50, 101 and 152 are supported");
}

ResidualBackbone read_backbone(const Config& c) {
  c.pass_over({"use_timm_backbone", "use_pretrained_backbone", "backbone_kwargs", "backbone"});
  const auto config = c.sub("backbone_config");
  if (!config) return timm_backbone(c, c.text("backbone", "resnet50"));
  const std::string type = config->text("model_type", "resnet");
  if (type == "timm_backbone") {
    config->pass_over({"features_only", "use_pretrained_backbone", "out_indices", "out_features",
                       "freeze_batch_norm_2d", "num_channels", "architectures"});
    if (config->given("output_stride")) config->fail("output_stride", "is not supported");
    return timm_backbone(*config, config->text("backbone", "resnet50"));
  }
  if (type != "resnet") config->fail("model_type", "of a backbone only \"resnet\" is supported");
  ResidualBackbone b{.names = {.timm = false}};
  b.stem = config->size("embedding_size", 64);
  b.bottleneck =
      config->choice("layer_type", "bottleneck", {"bottleneck", "basic"}) == "bottleneck";
  b.stride_first = config->flag("downsample_in_bottleneck", false);
  b.first_halves = config->flag("downsample_in_first_stage", false);
  b.widths = config->sizes("hidden_sizes", {256, 512, 1024, 2048});
  b.depths = config->sizes("depths", {3, 4, 6, 3});
  if (b.widths.size() != b.depths.size()) {
    config->fail("depths", "has not one entry for each hidden size");
  }
  b.activation = config->activation("hidden_act", "relu");
  config->pass_over(
      {"num_channels", "out_features", "out_indices", "stage_names", "architectures"});
  return b;
}

// A convolution and a norm of numbers that do not learn.
Ref frozen_pair(Draft& d, const std::pair<std::string, std::string>& names, std::int64_t out,
                std::int64_t kernel, std::int64_t stride, bool frozen, Ref x) {
  Convolve convolution = square(names.first, out, kernel, stride, /*bias=*/false);
  convolution.frozen = frozen;
  return d.frozen_norm(names.second, d.convolve(convolution, x));
}

Ref residual_block(Draft& d, const ResidualBackbone& b, std::int64_t width, std::int64_t stride,
                   bool shortcut, bool frozen, Ref x) {
  constexpr std::int64_t reduction = 4;
  struct Part {
    std::int64_t out, kernel, stride;
  };
  std::vector<Part> parts{{width, 3, stride}, {width, 3, 1}};
  if (b.bottleneck) {
    const std::int64_t narrow = width / reduction;
    parts = {{narrow, 1, b.stride_first ? stride : 1},
             {narrow, 3, b.stride_first ? 1 : stride},
             {width, 1, 1}};
  }
  Ref out = x;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out = frozen_pair(d, b.names.convolution(static_cast<int>(i)), parts[i].out, parts[i].kernel,
                      parts[i].stride, frozen, out);
    if (i + 1 < parts.size()) out = d.activate(b.activation, out);
  }
  if (shortcut) x = frozen_pair(d, b.names.shortcut(), width, 1, stride, frozen, x);
  return d.activate(b.activation, d.sum(out, x));
}

// The last stage's picture.
Ref residual_picture(const Config& c, Draft& d, const ResidualBackbone& b) {
  constexpr std::int64_t stem_kernel = 7;
  Ref x = frozen_pair(d, b.names.stem(), b.stem, stem_kernel, 2, !b.names.timm,
                      d.image(c.size("num_channels", 3)));
  x = d.pool({.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, d.activate(b.activation, x));
  std::int64_t before = b.stem;
  for (std::size_t s = 0; s < b.widths.size(); ++s) {
    for (std::int64_t i = 0; i < b.depths[s]; ++i) {
      const Draft::In of(d, b.names.block(s, i));
      const std::int64_t stride = i == 0 && (s > 0 || b.first_halves) ? 2 : 1;
      x = residual_block(d, b, b.widths[s], stride, before != b.widths[s] || stride > 1,
                         !b.names.timm, x);
      before = b.widths[s];
    }
  }
  return x;
}

struct DetrSizes {
  std::int64_t hidden = 0, heads = 0, width = 0, layers = 0;
  std::string activation;
  double dropout = 0, attention_dropout = 0, inner_dropout = 0;
  bool norms_first = false;  // Table Transformer, whose attention is multiplied out
};

DetrSizes read_detr(const Config& c, const std::string& side, bool norms_first) {
  DetrSizes n;
  n.norms_first = norms_first;
  n.hidden = c.size("d_model|hidden_size", 256);
  n.heads = c.size(side + "_attention_heads", 8);
  n.width = c.size(side + "_ffn_dim", 2048);
  n.layers = c.layers(side + "_layers", 6);
  n.activation = c.activation("activation_function", "relu");
  n.dropout = c.rate("dropout", 0.1);
  n.attention_dropout = c.rate("attention_dropout", 0);
  n.inner_dropout = c.rate("activation_dropout", 0);
  static_cast<void>(c.divided("d_model", n.hidden, side + "_attention_heads", n.heads));
  return n;
}

// What the module with the projections is; of which values it reads is the caller's.
Ref detr_attention(Draft& d, const DetrSizes& n, const std::string& name, Ref q, Ref k, Ref v) {
  return d.attend({.name = name,
                   .heads = n.heads,
                   .o = n.norms_first ? "out_proj" : "o_proj",
                   .dropout = n.attention_dropout,
                   .plain = n.norms_first,
                   .heads_first = n.norms_first},
                  q, k, v);
}

// A branch onto the rows, whose norm is of what it reads or of the sum.
template <class Body>
Ref detr_branch(Draft& d, const DetrSizes& n, const std::string& norm, Ref x, const Body& body) {
  const Ref read = n.norms_first ? d.norm(row_norm(norm), x) : x;
  const Ref sum = d.sum(x, d.drop(n.dropout, body(read)));
  return n.norms_first ? sum : d.norm(row_norm(norm), sum);
}

Ref detr_mlp(Draft& d, const DetrSizes& n, Ref x) {
  const std::string at = n.norms_first ? "" : "mlp.";
  return detr_branch(d, n, "final_layer_norm", x, [&](Ref read) {
    Ref inner = d.linear({.name = at + "fc1", .out = n.width, .inner = true}, read);
    inner = d.drop(n.inner_dropout, d.activate(n.activation, inner));
    return d.linear({.name = at + "fc2", .out = n.hidden}, inner);
  });
}

// Sines of places, the same in every layer, added.
Ref at_places(Draft& d, Ref x) { return d.constant_table("places", x); }

// What the decoder leaves of the queries.
Ref detr_rows(const Config& c, Draft& d, const std::string& prefix, bool norms_first) {
  if (c.text("position_embedding_type", "sine") != "sine") {
    c.fail("position_embedding_type", "only \"sine\" is supported");
  }
  if (c.flag("dilation", false)) c.fail("dilation", "only false is supported");
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"}) {
    if (c.rate(key, 0) > 0) c.fail(key, "only 0 is supported");
  }
  const DetrSizes e = read_detr(c, "encoder", norms_first);
  const DetrSizes n = read_detr(c, "decoder", norms_first);
  const ResidualBackbone backbone = read_backbone(c);
  Ref x = 0;
  {
    const Draft::In of(d,
                       prefix + (norms_first ? "backbone.conv_encoder.model" : "backbone.model"));
    x = residual_picture(c, d, backbone);
  }
  x = d.rows(d.convolve(patches(prefix + "input_projection", e.hidden, 1), x));
  x = d.drop(e.dropout, x);
  for (std::int64_t i = 0; i < e.layers; ++i) {
    d.layer(prefix + "encoder.layers", i, "encoder");
    x = detr_branch(d, e, "self_attn_layer_norm", x, [&](Ref read) {
      const Ref placed = at_places(d, read);
      return detr_attention(d, e, "self_attn", placed, placed, read);
    });
    x = detr_mlp(d, e, x);
  }
  d.outside("queries");
  if (norms_first) x = d.norm(row_norm(prefix + "encoder.layernorm"), x);
  const std::int64_t queries = c.size("num_queries", 100);
  const Ref places = d.learned_rows(prefix + "query_position_embeddings", queries, n.hidden);
  Ref y =
      d.enter(RowsInput{.name = "queries", .rows = queries, .width = n.hidden, .constant = true});
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "decoder.layers", i, "decoder");
    y = detr_branch(d, n, "self_attn_layer_norm", y, [&](Ref read) {
      const Ref placed = d.sum(read, places);
      return detr_attention(d, n, "self_attn", placed, placed, read);
    });
    y = detr_branch(d, n, "encoder_attn_layer_norm", y, [&](Ref read) {
      return detr_attention(d, n, "encoder_attn", d.sum(read, places), at_places(d, x), x);
    });
    y = detr_mlp(d, n, y);
  }
  d.outside("head");
  return d.norm(row_norm(prefix + "decoder.layernorm"), y);
}

ModelSpec detr_spec(const Config& c, Draft& d) {
  if (c.flag("auxiliary_loss", false)) c.fail("auxiliary_loss", "only false is supported");
  c.pass_over({"class_cost", "bbox_cost", "giou_cost", "mask_loss_coefficient",
               "dice_loss_coefficient", "bbox_loss_coefficient", "giou_loss_coefficient",
               "eos_coefficient", "init_std", "init_xavier_std", "num_hidden_layers",
               "max_position_embeddings", "scale_embedding", "classifier_dropout",
               "num_attention_heads"});
  ModelSpec spec;
  constexpr std::int64_t usual = 800;  // the shorter side that its processor gives
  constexpr std::int64_t coarsest = 32;
  spec.network = d.finish({.side = usual, .coarsest = coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec detr_alone(const Config& c, bool norms_first) {
  Draft d;
  d.sum_loss(detr_rows(c, d, "", norms_first));
  return detr_spec(c, d);
}

// Its loss is of pairs that a matching on the host picks: a step's is the sum of both results.
ModelSpec detector(const Config& c, bool norms_first) {
  Draft d;
  const Ref rows = detr_rows(c, d, "model.", norms_first);
  const std::int64_t hidden = c.size("d_model|hidden_size", 256);
  d.sum_loss(d.linear({.name = "class_labels_classifier", .out = labels_of(c) + 1}, rows));
  Ref boxes = rows;
  constexpr std::int64_t corners = 4;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "bbox_predictor.layers." + std::to_string(i);
    boxes = d.linear({.name = name, .out = i < 2 ? hidden : corners}, boxes);
    boxes = d.activate(i < 2 ? "relu" : "sigmoid", boxes, name + ".act");
  }
  d.sum_loss(boxes);
  return detr_spec(c, d);
}

ModelSpec detr_model(const Config& c) { return detr_alone(c, /*norms_first=*/false); }
ModelSpec detr_detection(const Config& c) { return detector(c, /*norms_first=*/false); }
ModelSpec tables_model(const Config& c) { return detr_alone(c, /*norms_first=*/true); }
ModelSpec tables_detection(const Config& c) { return detector(c, /*norms_first=*/true); }

}  // namespace

std::vector<Family> detr_families() {
  return {{"DetrModel", "detr", detr_model},
          {"DetrForObjectDetection", "detr", detr_detection},
          {"TableTransformerModel", "table-transformer", tables_model},
          {"TableTransformerForObjectDetection", "table-transformer", tables_detection}};
}

}  // namespace shardsim::models
