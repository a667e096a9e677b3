// Swin 2 (arXiv:2111.09883): windows as Swin's; queries and keys of length one; the bias of
// distances is made of their coordinates by two products; norms behind the branches.
#include <algorithm>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

Ref swin2_block(Draft& d, const SwinBlock& n, Ref x) {
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
  const SwinSizes sizes = read_swin_sizes(c);
  if (c.flag("use_absolute_embeddings", false)) {
    c.fail("use_absolute_embeddings", "is not supported: the table has a row too many");
  }
  Ref x = swin_patches(c, d, sizes, prefix);
  std::int64_t block = 0;
  for (std::size_t s = 0; s < sizes.depths.size(); ++s) {
    d.layer(prefix + "encoder.layers", static_cast<std::int64_t>(s), "stage");
    const std::int64_t side = (sizes.image / sizes.patch) >> s;
    SwinBlock n = sizes.block_of(c, s);
    n.window = std::min(sizes.window, side);
    for (std::int64_t i = 0; i < sizes.depths[s]; ++i) {
      const Draft::In of(d, "blocks." + std::to_string(i));
      n.drop_path = rising_rate(sizes.drop_path, block++, sizes.blocks);
      n.shifted = i % 2 == 1 && side > n.window && sizes.window / 2 > 0;
      x = swin2_block(d, n, x);
    }
    d.note("stage " + std::to_string(s) + ": " + std::to_string(sizes.depths[s]) + " blocks of " +
           std::to_string(n.heads) + " heads, width " + std::to_string(n.width) + ", windows " +
           std::to_string(n.window) + " x " + std::to_string(n.window));
    if (s + 1 == sizes.depths.size()) break;
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
