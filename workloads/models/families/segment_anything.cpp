// The images' encoder of Segment Anything (arXiv:2304.02643), a plain ViT as ViTDet's
// (arXiv:2203.16527): windows, a few layers that see all places, scores with two tables of
// distances, a neck of two convolutions.
#include <algorithm>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision.hpp"
#include "workloads/models/families/vision_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

struct SamVision {
  std::int64_t hidden = 0, layers = 0, heads = 0, width = 0, side = 0, window = 0;
  std::string activation;
  bool qkv_bias = true, tables = true;
};

Ref sam_attention(Draft& d, const SamVision& n, std::int64_t side, Ref x) {
  Attend attention{
      .name = "attn", .heads = n.heads, .o = "proj", .qkv = "qkv", .q_bias = n.qkv_bias};
  if (n.tables) attention.decomposed = {side, side};
  return d.attend(attention, x, x, x);
}

Ref sam_layer(Draft& d, const SamVision& n, bool sees_all, Ref x) {
  const Ref read = d.norm(row_norm("layer_norm1"), x);
  Ref out = 0;
  if (sees_all) {
    out = sam_attention(d, n, n.side, read);
  } else {
    out = sam_attention(d, n, n.window, d.windows(n.window, read));
    out = d.from_windows(n.window, out, read);
  }
  x = d.sum(x, out);
  const Ref fed = d.norm(row_norm("layer_norm2"), x);
  return d.sum(x, d.mlp("mlp.lin1", "mlp.lin2", n.width, n.hidden, n.activation, fed));
}

Ref sam_picture(const Config& c, Draft& d, const std::string& prefix, std::int64_t mlp_dim) {
  SamVision n;
  n.hidden = c.size("hidden_size", 768);
  n.layers = c.layers("num_hidden_layers", 12);
  n.heads = c.size("num_attention_heads", 12);
  static_cast<void>(c.divided("hidden_size", n.hidden, "num_attention_heads", n.heads));
  const double by_ratio = c.ratio("mlp_ratio", 4) * static_cast<double>(n.hidden);
  if (mlp_dim == 0) mlp_dim = static_cast<std::int64_t>(by_ratio);
  n.width = c.optional_size("mlp_dim", mlp_dim).value_or(static_cast<std::int64_t>(by_ratio));
  n.activation = c.activation("hidden_act", "gelu");
  n.qkv_bias = c.flag("qkv_bias", true);
  n.tables = c.flag("use_rel_pos", true);
  if (c.rate("attention_dropout", 0) > 0) {
    c.fail("attention_dropout", "only 0 is supported: the fused kernel's class ignores it");
  }
  const std::int64_t patch = c.size("patch_size", 16);
  n.side = c.divided("image_size", c.size("image_size", 1024), "patch_size", patch);
  n.window = c.count("window_size", 14);
  auto global = c.integers("global_attn_indexes");
  if (global.empty()) global = {2, 5, 8, 11};
  Ref x = d.rows(d.convolve(patches(prefix + "patch_embed.projection", n.hidden, patch),
                            d.image(c.size("num_channels", 3))));
  if (c.flag("use_abs_pos", true)) x = d.place_table(prefix + "pos_embed", x);
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "layers", i, "encoder");
    const bool sees_all =
        n.window == 0 || std::find(global.begin(), global.end(), i) != global.end();
    x = sam_layer(d, n, sees_all, x);
  }
  d.outside("neck");
  const std::int64_t out = c.size("output_channels", 256);
  const Draft::In of(d, prefix + "neck");
  x = d.norm(row_norm("layer_norm1"),
             d.convolve(square("conv1", out, 1, 1, /*bias=*/false), d.picture(x)));
  return d.norm(row_norm("layer_norm2"), d.convolve(square("conv2", out, 3, 1, /*bias=*/false), x));
}

}  // namespace

Blueprint sam_encoder(const Config& c, const std::string& prefix, std::int64_t mlp_dim) {
  Draft d;
  d.sum_loss(sam_picture(c, d, prefix, mlp_dim));
  c.pass_over({"num_pos_feats", "scale"});  // of positions of points
  return d.finish({.side = c.size("image_size", 1024), .takes_one_side = true});
}

namespace {

ModelSpec sam_vision(const Config& c) {
  ModelSpec spec;
  spec.network = sam_encoder(c, "vision_encoder.");
  spec.head.kind = HeadKind::none;
  return spec;
}

}  // namespace

std::vector<Family> segment_anything_families() {
  return {{"SamVisionModel", "sam_vision_model", sam_vision}};
}

}  // namespace shardsim::models
