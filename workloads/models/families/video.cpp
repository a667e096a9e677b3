// Encoders of videos: patches of ViViT (arXiv:2103.15691) and of VideoMAE's encoder
// (arXiv:2203.12602) are a few frames deep; TimeSformer (arXiv:2102.05095) attends over frames and
// over places in turn.
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

struct Tubes {
  std::int64_t frames = 0, image = 0, deep = 0, patch = 0;
};

Ref tube_rows(const Config& c, Draft& d, const std::string& name, const Tubes& t,
              std::int64_t hidden) {
  static_cast<void>(c.divided("image_size", t.image, "patch_size", t.patch));
  static_cast<void>(c.divided("num_frames", t.frames, "tubelet_size", t.deep));
  Convolve cut = patches(name, hidden, t.patch);
  cut.tubelet = t.deep;
  const Ref video = d.enter(PictureInput{.name = "frames",
                                         .channels = c.size("num_channels", 3),
                                         .frames = t.frames,
                                         .rows = t.image,
                                         .columns = t.image});
  return d.rows(d.convolve(cut, video));
}

ModelSpec video_spec(const Config& c, Draft& d) {
  ModelSpec spec;
  spec.network = d.finish({.side = c.size("image_size", 224), .takes_one_side = true});
  spec.head.kind = HeadKind::none;
  return spec;
}

Ref vivit_rows(const Config& c, Draft& d, const std::string& prefix) {
  const VisionSizes n = read_vision(c, "gelu_fast");
  const auto tube = c.sizes("tubelet_size", {2, 16, 16});
  if (tube.size() != 3 || tube[1] != tube[2]) {
    c.fail("tubelet_size", "is not of frames and two equal sides");
  }
  const Tubes t{c.size("num_frames", 32), c.size("image_size", 224), tube[0], tube[1]};
  const std::string at = prefix + "embeddings.";
  Ref x = tube_rows(c, d, at + "patch_embeddings.projection", t, n.hidden);
  x = d.before(at + "cls_token", x);
  x = d.drop(n.dropout, d.table(at + "position_embeddings", x));
  x = vit_layers(d, n, prefix, x);
  c.pass_over({"pooler_output_size", "pooler_act"});
  return d.norm(row_norm(prefix + "layernorm"), x);
}

ModelSpec vivit_model(const Config& c) {
  Draft d;
  const Ref rows = vivit_rows(c, d, "");
  const std::int64_t pooled = c.size("pooler_output_size", c.size("hidden_size", 768));
  static_cast<void>(d.activate(
      c.activation("pooler_act", "tanh"),
      d.linear({.name = "pooler.dense", .out = pooled}, d.part({.single = true}, rows))));
  d.sum_loss(rows);
  return video_spec(c, d);
}

ModelSpec vivit_classifier(const Config& c) {
  Draft d;
  const Ref first = d.part({.single = true}, vivit_rows(c, d, "vivit."));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, first));
  return video_spec(c, d);
}

Ref videomae_rows(const Config& c, Draft& d, const std::string& prefix) {
  const VisionSizes n = read_vision(c, "gelu");
  const bool bias = c.flag("qv_bias", true);
  const Tubes t{c.size("num_frames", 16), c.size("image_size", 224), c.size("tubelet_size", 2),
                c.size("patch_size", 16)};
  Ref x = tube_rows(c, d, prefix + "embeddings.patch_embeddings.projection", t, n.hidden);
  x = d.constant_table("positions", x);
  const RowLayer layer{.attention = {.name = "attention",
                                     .heads = n.heads,
                                     .q = "attention.query",
                                     .k = "attention.key",
                                     .v = "attention.value",
                                     .o = "output.dense",
                                     .q_bias = bias,
                                     .k_bias = false,
                                     .v_bias = bias,
                                     .dropout = n.attention_dropout},
                       .hidden = n.hidden,
                       .width = n.width,
                       .activation = n.activation,
                       .dropout = n.dropout};
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "encoder.layer", i, "encoder");
    x = row_layer(d, layer, x);
  }
  d.outside("head");
  c.pass_over({"decoder_num_attention_heads", "decoder_hidden_size", "decoder_num_hidden_layers",
               "decoder_intermediate_size", "norm_pix_loss"});
  return c.flag("use_mean_pooling", true) ? x : d.norm(row_norm(prefix + "layernorm"), x);
}

ModelSpec videomae_model(const Config& c) {
  Draft d;
  d.sum_loss(videomae_rows(c, d, ""));
  return video_spec(c, d);
}

ModelSpec videomae_classifier(const Config& c) {
  Draft d;
  const Ref rows = videomae_rows(c, d, "videomae.");
  const Ref read = c.flag("use_mean_pooling", true) ? d.norm(row_norm("fc_norm"), d.mean(rows))
                                                    : d.part({.single = true}, rows);
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, read));
  return video_spec(c, d);
}

// Defaults: transformers 5.23, configuration_timesformer.py.
Ref timesformer_rows(const Config& c, Draft& d, const std::string& prefix) {
  const VisionSizes n = read_vision(c, "gelu");
  const std::string type = c.text("attention_type", "divided_space_time");
  if (type != "divided_space_time") {
    c.fail("attention_type", "only \"divided_space_time\" is supported");
  }
  if (c.rate("drop_path_rate", 0) > 0) c.fail("drop_path_rate", "only 0 is supported");
  const std::int64_t frames = c.size("num_frames", 8);
  const std::int64_t image = c.size("image_size", 224);
  const std::int64_t patch = c.size("patch_size", 16);
  static_cast<void>(c.divided("image_size", image, "patch_size", patch));
  const Ref video = d.enter(PictureInput{.name = "frames",
                                         .channels = c.size("num_channels", 3),
                                         .frames = frames,
                                         .rows = image,
                                         .columns = image});
  const std::string at = prefix + "embeddings";
  Ref x = d.rows(d.convolve(patches(at + ".patch_embeddings.projection", n.hidden, patch), video));
  x = d.draw({FramePositions{frames, n.dropout}, at}, {x});
  const DividedAttention attention{frames, n.heads, n.qkv_bias, n.attention_dropout, n.dropout};
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "encoder.layer", i, "encoder");
    x = d.draw({attention, ""}, {x});
    Ref inner = d.linear({.name = "intermediate.dense", .out = n.width, .inner = true},
                         d.norm(row_norm("layernorm_after"), x));
    inner = d.drop(n.dropout, d.activate(n.activation, inner));
    x = d.sum(x, d.drop(n.dropout, d.linear({.name = "output.dense", .out = n.hidden}, inner)));
  }
  d.outside("head");
  return d.norm(row_norm(prefix + "layernorm"), x);
}

ModelSpec timesformer_model(const Config& c) {
  Draft d;
  d.sum_loss(timesformer_rows(c, d, ""));
  return video_spec(c, d);
}

ModelSpec timesformer_classifier(const Config& c) {
  Draft d;
  const Ref first = d.part({.single = true}, timesformer_rows(c, d, "timesformer."));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, first));
  return video_spec(c, d);
}

}  // namespace

std::vector<Family> video_families() {
  return {{"VivitModel", "vivit", vivit_model},
          {"VivitForVideoClassification", "vivit", vivit_classifier},
          {"TimesformerModel", "timesformer", timesformer_model},
          {"TimesformerForVideoClassification", "timesformer", timesformer_classifier},
          {"VideoMAEModel", "videomae", videomae_model},
          {"VideoMAEForVideoClassification", "videomae", videomae_classifier}};
}

}  // namespace shardsim::models
