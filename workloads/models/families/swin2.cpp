// Swin 2 (arXiv:2111.09883): windows as Swin's; queries and keys of length one; the bias of
// distances is made of their coordinates by two products; norms behind the branches.
#include <algorithm>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

struct Swin2Block {
  std::int64_t width = 0, heads = 0, window = 0, ffn = 0;
  bool shifted = false, qkv_bias = true;
  double drop_path = 0, dropout = 0, attention_dropout = 0;
  std::string activation;
};

Ref swin2_block(Draft& d, const Swin2Block& n, Ref x) {
  constexpr std::int64_t bias_width = 512;
  const std::int64_t span = 2 * n.window - 1;
  const Ref windows = d.windows(n.window, x);
  const Ref bias = d.distance_bias({.name = "attention.self.continuous_position_bias_mlp",
                                    .distances = span * span,
                                    .heads = n.heads,
                                    .places = n.window * n.window,
                                    .made_width = bias_width},
                                   n.shifted ? std::optional<Ref>(windows) : std::nullopt);
  Ref out = d.attend({.name = "attention",
                      .heads = n.heads,
                      .q = "self.query",
                      .k = "self.key",
                      .v = "self.value",
                      .o = "output.dense",
                      .q_bias = n.qkv_bias,
                      .k_bias = false,
                      .v_bias = n.qkv_bias,
                      .dropout = n.attention_dropout,
                      .plain = true,
                      .cosine = "self.logit_scale"},
                     windows, windows, windows, bias);
  out = d.from_windows(n.window, d.drop(n.dropout, out), x);
  x = d.sum(x, d.drop_path(n.drop_path, d.norm(row_norm("layernorm_before"), out)));
  out = d.mlp("intermediate.dense", "output.dense", n.ffn, n.width, n.activation, x);
  out = d.norm(row_norm("layernorm_after"), d.drop(n.dropout, out));
  return d.sum(x, d.drop_path(n.drop_path, out));
}

// The normed rows of the last stage.
Ref swin2_rows(const Config& c, Draft& d, const std::string& prefix) {
  const std::int64_t image = c.size("image_size", 224);
  const std::int64_t patch = c.size("patch_size", 4);
  const std::int64_t width = c.size("embed_dim", 96);
  const std::int64_t window = c.size("window_size", 7);
  const auto depths = c.sizes("depths", {2, 2, 6, 2});
  const auto heads = c.sizes("num_heads|num_attention_heads", {3, 6, 12, 24});
  if (heads.size() != depths.size()) c.fail("num_heads", "has not one entry for each stage");
  if (c.flag("use_absolute_embeddings", false)) {
    c.fail("use_absolute_embeddings", "is not supported: the table has a row too many");
  }
  Swin2Block n{.qkv_bias = c.flag("qkv_bias", true),
               .dropout = c.rate("hidden_dropout_prob", 0),
               .attention_dropout = c.rate("attention_probs_dropout_prob", 0),
               .activation = c.activation("hidden_act", "gelu")};
  const double ratio = c.ratio("mlp_ratio", 4);
  const double last = c.rate("drop_path_rate", 0.1);
  std::int64_t all = 0;
  for (const std::int64_t depth : depths) all += depth;
  const std::string at = prefix + "embeddings.";
  Ref x = d.rows(d.convolve(patches(at + "patch_embeddings.projection", width, patch),
                            d.image(c.size("num_channels", 3))));
  x = d.drop(n.dropout, d.norm(row_norm(at + "norm"), x));
  std::int64_t block = 0;
  for (std::size_t s = 0; s < depths.size(); ++s) {
    d.layer(prefix + "encoder.layers", static_cast<std::int64_t>(s), "stage");
    const std::int64_t side = (image / patch) >> s;
    n.width = width << s;
    n.heads = heads[s];
    static_cast<void>(c.divided("embed_dim", n.width, "num_heads", n.heads));
    n.window = std::min(window, side);
    n.ffn = static_cast<std::int64_t>(ratio * static_cast<double>(n.width));
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      const Draft::In of(d, "blocks." + std::to_string(i));
      n.drop_path = rising_rate(last, block++, all);
      n.shifted = i % 2 == 1 && side > n.window && window / 2 > 0;
      x = swin2_block(d, n, x);
    }
    d.note("stage " + std::to_string(s) + ": " + std::to_string(depths[s]) + " blocks of " +
           std::to_string(n.heads) + " heads, width " + std::to_string(n.width) + ", windows " +
           std::to_string(n.window) + " x " + std::to_string(n.window));
    if (s + 1 == depths.size()) break;
    x = d.linear({.name = "downsample.reduction", .out = 2 * n.width, .bias = false}, d.merge(x));
    x = d.norm(row_norm("downsample.norm"), x);
  }
  d.outside("head");
  return d.norm(row_norm(prefix + "layernorm"), x);
}

ModelSpec swin2_spec(const Config& c, Draft& d) {
  // Made of depths and embed_dim, or of the backbone's class.
  c.pass_over({"num_layers", "num_hidden_layers", "hidden_size", "path_norm", "encoder_stride",
               "pretrained_window_sizes", "out_features", "out_indices", "stage_names",
               "_out_features", "_out_indices"});
  ModelSpec spec;
  spec.network = d.finish({.side = c.size("image_size", 224), .coarsest = c.size("patch_size", 4)});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec swin2_model(const Config& c) {
  Draft d;
  const Ref rows = swin2_rows(c, d, "");
  d.sum_loss(rows);
  return swin2_spec(c, d);
}

ModelSpec swin2_classifier(const Config& c) {
  Draft d;
  d.classes(
      d.linear({.name = "classifier", .out = labels_of(c)}, d.mean(swin2_rows(c, d, "swinv2."))));
  return swin2_spec(c, d);
}

}  // namespace

std::vector<Family> swin2_families() {
  return {{"Swinv2Model", "swinv2", swin2_model},
          {"Swinv2ForImageClassification", "swinv2", swin2_classifier}};
}

}  // namespace shardsim::models
