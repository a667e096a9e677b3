// Transformers that take noise off latents of images, under diffusers' names: DiT
// (arXiv:2212.09748), PixArt (arXiv:2310.00426, arXiv:2403.04692) and Sana (arXiv:2410.10629).
#include <fmt/format.h>

#include "workloads/models/families/diffusion_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

void refuse_flags(const Config& c, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (c.flag(key, false)) c.fail(key, "true is not supported");
  }
}

void require_text(const Config& c, std::string_view key, std::string_view value) {
  if (c.text(key, value) != value) c.fail(key, fmt::format("only \"{}\" is supported", value));
}

Ref patch_rows(Draft& d, const std::string& name, std::int64_t in, std::int64_t hidden,
               std::int64_t patch) {
  const Ref latents = d.image(in);
  return d.rows(d.convolve(patches(name, hidden, patch), latents));
}

ModelSpec dit(const Config& c) {
  Draft d;
  c.pass_over({"norm_num_groups"});  // its norms have no groups
  const std::int64_t in = c.size("in_channels", 4);
  const std::int64_t side = c.size("sample_size", 32);
  const std::int64_t patch = c.size("patch_size", 2);
  const std::int64_t heads = c.size("num_attention_heads", 16);
  const std::int64_t head_dim = c.size("attention_head_dim", 72);
  const std::int64_t hidden = heads * head_dim;
  const std::int64_t classes = c.size("num_embeds_ada_norm", 1000);
  const double dropout = c.rate("dropout", 0);
  require_text(c, "activation_fn", "gelu-approximate");
  require_text(c, "norm_type", "ada_norm_zero");
  refuse_flags(c, {"norm_elementwise_affine", "upcast_attention"});
  static_cast<void>(c.divided("sample_size", side, "patch_size", patch));
  // Of the time and the class, which each block embeds anew.
  const auto embed = [&] {
    const Draft::In at(d, "norm1.emb");
    const Ref time = time_embedding(d, "timestep_embedder", 256, hidden);
    return d.sum(time, d.looked_up("class_embedder.embedding_table", classes + 1, hidden));
  };
  const RowAttention attention{.name = "attn1",
                               .heads = heads,
                               .head_dim = head_dim,
                               .bias = c.flag("attention_bias", true),
                               .dropout = dropout};
  Ref x =
      d.stream(d.constant_table("pos_embed", patch_rows(d, "pos_embed.proj", in, hidden, patch)));
  Ref last = 0;
  const std::int64_t layers = layers_of(c, "num_layers", 28);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    const Parts by{modulation(d, "norm1", 6, hidden, embed())};
    const Ref rows = modulated(d, d.norm(plain_norm("norm1.norm"), x), by, 0, 1);
    x = gated(d, x, attend_rows(d, attention, rows, rows), by, 2);
    const Ref mixed = modulated(d, d.norm(plain_norm("norm3"), x), by, 3, 4);
    x = gated(d, x,
              feed_forward(d, {.hidden = hidden, .width = 4 * hidden, .dropout = dropout}, mixed),
              by, 5);
    if (i == 0) last = embed();  // once more, for the result
  }
  d.outside("head");
  const Parts by{d.linear({.name = "proj_out_1", .out = 2 * hidden, .parts = 2},
                          d.activate("silu", last, "proj_out_1.silu")),
                 2};
  x = modulated(d, d.norm(plain_norm("norm_out"), x), by, 0, 1);
  const std::int64_t out = c.size("out_channels", in);
  d.sum_loss(d.linear({.name = "proj_out_2", .out = patch * patch * out}, x));
  d.note(fmt::format("{} blocks: attention, {} heads of {}; MLP of {}; both modulated", layers,
                     heads, head_dim, 4 * hidden));
  return drafted(d, {.side = side, .coarsest = patch});
}

// An embedding of the time, and of resolution and aspect ratio.
Ref pixart_condition(Draft& d, std::int64_t hidden, bool sizes) {
  constexpr std::int64_t numbers = 256;
  const Draft::In at(d, "adaln_single.emb");
  const Ref time = time_embedding(d, "timestep_embedder", numbers, hidden);
  if (!sizes) return time;
  const std::int64_t third = hidden / 3;
  const Ref resolution = d.flattened(two_products(
      d, "resolution_embedder", third,
      d.enter(RowsInput{.name = "resolution", .rows = 2, .width = numbers, .constant = true})));
  const Ref ratio =
      two_products(d, "aspect_ratio_embedder", third,
                   d.enter(RowsInput{.name = "aspect_ratio", .width = numbers, .constant = true}));
  return d.sum(time, d.beside({resolution, ratio}));
}

// Whether resolution and aspect ratio are embedded, too.
bool pixart_sizes(const Config& c, std::int64_t side, std::int64_t patch, std::int64_t hidden) {
  c.pass_over({"norm_num_groups", "num_embeds_ada_norm", "norm_eps", "interpolation_scale"});
  require_text(c, "norm_type", "ada_norm_single");
  require_text(c, "attention_type", "default");
  refuse_flags(c, {"norm_elementwise_affine", "upcast_attention"});
  static_cast<void>(c.divided("sample_size", side, "patch_size", patch));
  const bool sizes = c.given("use_additional_conditions")
                         ? c.flag("use_additional_conditions", false)
                         : side == 128;
  if (sizes && hidden % 3 != 0) {
    c.fail("attention_head_dim", "times num_attention_heads is no multiple of 3");
  }
  return sizes;
}

ModelSpec pixart(const Config& c) {
  Draft d;
  const std::int64_t in = c.size("in_channels", 4);
  const std::int64_t side = c.size("sample_size", 128);
  const std::int64_t patch = c.size("patch_size", 2);
  const std::int64_t heads = c.size("num_attention_heads", 16);
  const std::int64_t head_dim = c.size("attention_head_dim", 72);
  const std::int64_t hidden = heads * head_dim;
  const double dropout = c.rate("dropout", 0);
  const bool sizes = pixart_sizes(c, side, patch, hidden);
  Ref x =
      d.stream(d.constant_table("pos_embed", patch_rows(d, "pos_embed.proj", in, hidden, patch)));
  const Ref condition = pixart_condition(d, hidden, sizes);
  const Ref all = modulation(d, "adaln_single", 6, hidden, condition);
  const bool projects = c.given("caption_channels");
  const std::int64_t width = c.size("cross_attention_dim", 1152);
  Ref text = d.enter(RowsInput{.name = "encoder_hidden_states",
                               .width = projects ? c.size("caption_channels", width) : width,
                               .is_text_long = true});
  if (projects) {
    text = two_products(d, "caption_projection", hidden, text, true, "gelu_pytorch_tanh");
  }
  RowAttention among{.name = "attn1",
                     .heads = heads,
                     .head_dim = head_dim,
                     .bias = c.flag("attention_bias", true),
                     .dropout = dropout};
  RowAttention to_text = among;
  to_text.name = "attn2";
  const FeedForwardRows mlp{.hidden = hidden,
                            .width = 4 * hidden,
                            .activation = activation_of(c, "activation_fn", "gelu-approximate"),
                            .dropout = dropout};
  const std::int64_t layers = layers_of(c, "num_layers", 28);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    const Parts by{d.table_of_parts("scale_shift_table", 6, all, /*no_batch=*/true)};
    const Ref rows = modulated(d, d.norm(plain_norm("norm1"), x), by, 0, 1);
    x = gated_first(d, x, attend_rows(d, among, rows, rows), by, 2);
    x = d.stream(d.sum(attend_rows(d, to_text, x, text), x));
    const Ref mixed = modulated(d, d.norm(plain_norm("norm2"), x), by, 3, 4);
    x = gated_first(d, x, feed_forward(d, mlp, mixed), by, 5);
  }
  d.outside("head");
  const Parts by{d.table_of_parts("scale_shift_table", 2, condition, /*no_batch=*/true), 2};
  x = modulated(d, d.norm(plain_norm("norm_out"), x), by, 0, 1);
  const std::int64_t out = c.optional_size("out_channels", 8).value_or(in);
  d.sum_loss(d.linear({.name = "proj_out", .out = patch * patch * out}, x));
  d.note(
      fmt::format("{} blocks: attention of {} heads of {}, to the text, and an MLP of {}; one "
                  "modulation and a table each",
                  layers, heads, head_dim, 4 * hidden));
  return drafted(d, {.side = side, .coarsest = patch, .text = 300});
}

// A convolution of each channel alone between two of one place each, half of it a gate.
Ref gated_convolutions(Draft& d, std::int64_t width, std::int64_t hidden, Ref x) {
  const Draft::In in(d, "ff");
  x = d.convolve({.name = "conv_inverted", .out = 2 * width}, d.picture(x));
  x = d.activate("silu", x, "nonlinearity");
  x = d.convolve(
      {.name = "conv_depth", .out = 2 * width, .kernel = {3, 3}, .padding = {1, 1}, .each = true},
      x);
  const Ref gate = d.activate("silu", d.width_part(1, 2, x), "nonlinearity");
  x = d.product(d.width_part(0, 2, x), gate);
  return d.rows(d.convolve({.name = "conv_point", .out = hidden, .bias = false}, x));
}

// Time, and a guidance where the model was distilled.
Ref sana_condition(Draft& d, std::int64_t hidden, bool guidance) {
  constexpr std::int64_t numbers = 256;
  const Draft::In at(d, "time_embed");
  if (!guidance) return time_embedding(d, "emb.timestep_embedder", numbers, hidden);
  const Ref time = time_embedding(d, "timestep_embedder", numbers, hidden);
  return d.sum(time, time_embedding(d, "guidance_embedder", numbers, hidden));
}

Ref sana_text(const Config& c, Draft& d, std::int64_t hidden) {
  const Ref text = two_products(d, "caption_projection", hidden,
                                d.enter(RowsInput{.name = "encoder_hidden_states",
                                                  .width = c.size("caption_channels", 2304),
                                                  .is_text_long = true}),
                                true, "gelu_pytorch_tanh");
  return d.norm({NormKind::rms_t5, "caption_norm"}, text);
}

ModelSpec sana(const Config& c) {
  Draft d;
  const std::int64_t in = c.size("in_channels", 32);
  const std::int64_t side = c.size("sample_size", 32);
  const std::int64_t patch = c.size("patch_size", 1);
  const std::int64_t heads = c.size("num_attention_heads", 70);
  const std::int64_t head_dim = c.size("attention_head_dim", 32);
  const std::int64_t hidden = heads * head_dim;
  const double dropout = c.rate("dropout", 0);
  c.pass_over({"norm_eps", "guidance_embeds_scale", "timestep_scale"});
  static_cast<void>(c.divided("sample_size", side, "patch_size", patch));
  if (c.size("cross_attention_dim", 2240) != hidden) {
    c.fail("cross_attention_dim", "is not num_attention_heads * attention_head_dim");
  }
  const bool normed = c.given("qk_norm");
  if (normed) require_text(c, "qk_norm", "rms_norm_across_heads");
  const auto width =
      static_cast<std::int64_t>(c.ratio("mlp_ratio", 2.5) * static_cast<double>(hidden));
  Ref x = d.stream(patch_rows(d, "patch_embed.proj", in, hidden, patch));
  if (c.given("interpolation_scale")) x = d.constant_table("patch_embed.pos_embed", x);
  const Ref condition = sana_condition(d, hidden, c.flag("guidance_embeds", false));
  const Ref all = modulation(d, "time_embed", 6, hidden, condition);
  const Ref text = sana_text(c, d, hidden);
  const RowAttention among{.name = "attn1",
                           .heads = heads,
                           .head_dim = head_dim,
                           .bias = c.flag("attention_bias", false),
                           .norm = normed ? NormKind::rms_t5 : NormKind::none,
                           .norm_whole = true,
                           .dropout = dropout};
  RowAttention to_text = among;
  to_text.name = "attn2";
  to_text.bias = true;
  to_text.heads = c.size("num_cross_attention_heads", 20);
  to_text.head_dim = c.size("cross_attention_head_dim", 112);
  to_text.out = hidden;
  const bool affine = c.flag("norm_elementwise_affine", false);
  const std::int64_t layers = layers_of(c, "num_layers", 20);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    const Parts by{d.table_of_parts("scale_shift_table", 6, all, /*no_batch=*/true)};
    const Ref rows = modulated(d, d.norm(plain_norm("norm1"), x), by, 0, 1);
    x = gated(d, x, attend_linearly(d, among, rows), by, 2);
    x = d.stream(d.sum(attend_rows(d, to_text, x, text), x));
    const Ref mixed =
        modulated(d, d.norm(affine ? row_norm("norm2") : plain_norm("norm2"), x), by, 3, 4);
    x = gated(d, x, gated_convolutions(d, width, hidden, mixed), by, 5);
  }
  d.outside("head");
  const Parts by{d.table_of_parts("scale_shift_table", 2, condition, /*no_batch=*/true), 2};
  x = modulated(d, d.norm(plain_norm("norm_out.norm"), x), by, 0, 1);
  const std::int64_t out = c.optional_size("out_channels", 32).value_or(in);
  d.sum_loss(d.linear({.name = "proj_out", .out = patch * patch * out}, x));
  d.note(
      fmt::format("{} blocks: linear attention of {} heads of {}, attention to the text of {} "
                  "heads, gated convolutions of {} channels",
                  layers, heads, head_dim, to_text.heads, width));
  return drafted(d, {.side = side, .coarsest = patch, .text = 300});
}

// The class that older files name; which of both it is the norms say, as in diffusers'
// LegacyModelMixin.
ModelSpec transformer_2d(const Config& c) {
  refuse_flags(c, {"double_self_attention", "only_cross_attention", "use_linear_projection"});
  const std::string norms = c.text("norm_type", "layer_norm");
  if (norms == "ada_norm_zero") {
    require_text(c, "attention_type", "default");
    return dit(c);
  }
  if (norms == "ada_norm_single") return pixart(c);
  c.fail("norm_type", "only \"ada_norm_zero\" and \"ada_norm_single\" are supported");
}

}  // namespace

std::vector<Family> latent_diffusion_families() {
  return {{"Transformer2DModel", "transformer_2d", transformer_2d},
          {"DiTTransformer2DModel", "dit", dit},
          {"PixArtTransformer2DModel", "pixart", pixart},
          {"SanaTransformer2DModel", "sana", sana}};
}

}  // namespace shardsim::models
