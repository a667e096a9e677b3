// Pyramids of stages whose places get fewer and wider: PVT (arXiv:2102.12122), whose keys are
// places put together, and PoolFormer (arXiv:2111.11418), whose places see the mean around them.
#include <fmt/format.h>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

struct PyramidStage {
  std::int64_t width = 0, depth = 0, heads = 1, reduction = 1, ffn = 0;
};

struct PyramidSizes {
  std::vector<PyramidStage> stages;
  std::vector<std::int64_t> patch, stride;
  std::int64_t blocks = 0;
  std::string activation;
  double dropout = 0, attention_dropout = 0, drop_path = 0;
  bool qkv_bias = true;
};

PyramidSizes read_pyramid(const Config& c, std::vector<std::int64_t> patch) {
  PyramidSizes n;
  const auto count = static_cast<std::size_t>(c.size("num_encoder_blocks", 4));
  const auto widths = by_stage(c, "hidden_sizes", {64, 128, 320, 512});
  n.patch = by_stage(c, "patch_sizes", std::move(patch));
  n.stride = by_stage(c, "strides", {4, 2, 2, 2});
  n.activation = c.activation("hidden_act", "gelu");
  n.drop_path = c.rate("drop_path_rate", 0);
  for (std::size_t s = 0; s < count; ++s) n.stages.push_back({.width = widths[s]});
  return n;
}

void set_depths(const Config& c, PyramidSizes& n, std::vector<std::int64_t> otherwise) {
  const auto depths = c.sizes("depths", std::move(otherwise));
  if (depths.size() < n.stages.size()) c.fail("depths", "has not one entry for each stage");
  for (std::size_t s = 0; s < n.stages.size(); ++s) {
    n.stages[s].depth = depths[s];
    n.blocks += depths[s];
  }
}

PyramidSizes read_pvt(const Config& c) {
  PyramidSizes n = read_pyramid(c, {4, 2, 2, 2});
  set_depths(c, n, {2, 2, 2, 2});
  const auto heads = c.sizes("num_attention_heads", {1, 2, 5, 8});
  const auto reductions = c.sizes("sequence_reduction_ratios", {8, 4, 2, 1});
  const auto ratios = c.sizes("mlp_ratios", {8, 8, 4, 4});
  for (const auto& [key, size] : {std::pair{"num_attention_heads", heads.size()},
                                  {"sequence_reduction_ratios", reductions.size()},
                                  {"mlp_ratios", ratios.size()}}) {
    if (size < n.stages.size()) c.fail(key, "has not one entry for each stage");
  }
  for (std::size_t s = 0; s < n.stages.size(); ++s) {
    PyramidStage& stage = n.stages[s];
    stage.heads = heads[s];
    stage.reduction = reductions[s];
    stage.ffn = stage.width * ratios[s];
    static_cast<void>(c.divided("hidden_sizes", stage.width, "num_attention_heads", stage.heads));
  }
  if (n.stages.back().reduction != 1) {
    c.fail("sequence_reduction_ratios", "of the last stage has to be 1: it has a class token");
  }
  n.dropout = c.rate("hidden_dropout_prob", 0);
  n.attention_dropout = c.rate("attention_probs_dropout_prob", 0);
  n.qkv_bias = c.flag("qkv_bias", true);
  return n;
}

Ref pvt_block(Draft& d, const PyramidSizes& n, const PyramidStage& stage, double rate, Ref x) {
  const Ref read = d.norm(row_norm("layer_norm_1"), x);
  Ref reduced = read;
  if (stage.reduction > 1) {
    const Draft::In of(d, "attention.self");
    reduced = d.norm(row_norm("layer_norm"),
                     d.rows(d.convolve(patches("sequence_reduction", stage.width, stage.reduction),
                                       d.picture(read))));
  }
  const Ref seen = d.attend({.name = "attention",
                             .heads = stage.heads,
                             .q = "self.query",
                             .k = "self.key",
                             .v = "self.value",
                             .o = "output.dense",
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
  inner = d.drop(n.dropout, d.activate(n.activation, inner));
  inner = d.linear({.name = "dense2", .out = stage.width}, inner);
  return d.sum(x, d.drop_path(rate, d.drop(n.dropout, inner)));
}

Ref pvt_rows(const Config& c, Draft& d, const std::string& prefix) {
  const PyramidSizes n = read_pvt(c);
  Ref x = d.image(c.size("num_channels", 3));
  std::int64_t block = 0;
  for (std::size_t s = 0; s < n.stages.size(); ++s) {
    const bool last = s + 1 == n.stages.size();
    const std::string number = std::to_string(s);
    if (s > 0) d.outside("patch_embeddings." + number);
    const std::string at = fmt::format("{}encoder.patch_embeddings.{}.", prefix, number);
    Convolve cut = patches(at + "projection", n.stages[s].width, n.stride[s]);
    cut.stride = {n.patch[s], n.patch[s]};
    x = d.norm(row_norm(at + "layer_norm"), d.rows(d.convolve(cut, x)));
    if (last) x = d.before(at + "cls_token", x);
    x = d.drop(n.dropout, d.table(at + "position_embeddings", x));
    for (std::int64_t i = 0; i < n.stages[s].depth; ++i) {
      d.layer(fmt::format("{}encoder.block.{}", prefix, number), i, "block");
      x = pvt_block(d, n, n.stages[s], rising_rate(n.drop_path, block++, n.blocks), x);
    }
    if (!last) x = d.copied_picture(x);
  }
  d.outside("head");
  return d.norm(row_norm(prefix + "encoder.layer_norm"), x);
}

ModelSpec pvt_spec(const Config& c, Draft& d) {
  ModelSpec spec;
  spec.network = d.finish({.side = c.size("image_size", 224), .takes_one_side = true});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec pvt_model(const Config& c) {
  Draft d;
  d.sum_loss(pvt_rows(c, d, ""));
  return pvt_spec(c, d);
}

ModelSpec pvt_classifier(const Config& c) {
  Draft d;
  const Ref first = d.part({.single = true}, pvt_rows(c, d, "pvt."));
  const bool named = c.given("num_labels") || c.given("id2label");
  d.classes(d.linear({.name = "classifier", .out = named ? labels_of(c) : 1000}, first));
  return pvt_spec(c, d);
}

Ref pool_block(Draft& d, const PyramidSizes& n, const PyramidStage& stage, std::int64_t pool,
               bool scaled, double rate, Ref x) {
  const Ref normed = d.group_norm("before_norm", 1, x);
  Ref out = d.sum(d.pool({.kernel = {pool, pool},
                          .stride = {1, 1},
                          .padding = {pool / 2, pool / 2},
                          .largest = false},
                         normed),
                  normed);
  if (scaled) out = d.factor("layer_scale_1", out);
  x = d.sum(x, d.drop_path(rate, out));
  out = d.convolve(patches("output.conv1", stage.ffn, 1), d.group_norm("after_norm", 1, x));
  out = d.drop_path(rate, d.activate(n.activation, out));
  out = d.drop_path(rate, d.convolve(patches("output.conv2", stage.width, 1), out));
  if (scaled) out = d.factor("layer_scale_2", out);
  return d.sum(x, d.drop_path(rate, out));
}

Ref poolformer_picture(const Config& c, Draft& d, const std::string& prefix) {
  PyramidSizes n = read_pyramid(c, {7, 3, 3, 3});
  set_depths(c, n, {2, 2, 6, 2});
  const auto paddings = c.sizes("padding", {2, 1, 1, 1});
  if (paddings.size() < n.stages.size()) c.fail("padding", "has not one entry for each stage");
  const double ratio = c.ratio("mlp_ratio", 4);
  const std::int64_t pool = c.size("pool_size", 3);
  const bool scaled = c.flag("use_layer_scale", true);
  c.pass_over({"patch_size", "stride", "layer_scale_init_value"});
  Ref x = d.image(c.size("num_channels", 3));
  std::int64_t block = 0;
  for (std::size_t s = 0; s < n.stages.size(); ++s) {
    PyramidStage& stage = n.stages[s];
    stage.ffn = static_cast<std::int64_t>(static_cast<double>(stage.width) * ratio);
    const std::string number = std::to_string(s);
    if (s > 0) d.outside("patch_embeddings." + number);
    Convolve cut = square(fmt::format("{}encoder.patch_embeddings.{}.projection", prefix, number),
                          stage.width, n.patch[s], n.stride[s]);
    cut.padding = {paddings[s], paddings[s]};
    x = d.convolve(cut, x);
    for (std::int64_t i = 0; i < stage.depth; ++i) {
      d.layer(fmt::format("{}encoder.block.{}", prefix, number), i, "block");
      x = pool_block(d, n, stage, pool, scaled, rising_rate(n.drop_path, block++, n.blocks), x);
    }
  }
  d.outside("head");
  return x;
}

ModelSpec poolformer_spec(Draft& d) {
  ModelSpec spec;
  constexpr std::int64_t coarsest = 32;
  spec.network = d.finish({.side = 224, .coarsest = coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec poolformer_model(const Config& c) {
  Draft d;
  d.sum_loss(poolformer_picture(c, d, ""));
  return poolformer_spec(d);
}

ModelSpec poolformer_classifier(const Config& c) {
  Draft d;
  const Ref x = d.group_norm("norm", 1, poolformer_picture(c, d, "poolformer."));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, d.mean(x)));
  return poolformer_spec(d);
}

}  // namespace

std::vector<Family> pyramid_families() {
  return {{"PvtModel", "pvt", pvt_model},
          {"PvtForImageClassification", "pvt", pvt_classifier},
          {"PoolFormerModel", "poolformer", poolformer_model},
          {"PoolFormerForImageClassification", "poolformer", poolformer_classifier}};
}

}  // namespace shardsim::models
