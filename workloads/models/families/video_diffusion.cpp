// Transformers that take noise off latents of videos, under diffusers' names: Wan 2.1 and 2.2
// (arXiv:2503.20314), LTX-Video (arXiv:2501.00103).
#include <fmt/format.h>

#include "workloads/models/families/diffusion_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

std::vector<std::int64_t> read_patch(const Config& c, const Canvas& canvas) {
  std::vector<std::int64_t> patch = c.sizes("patch_size", {1, 2, 2});
  if (patch.size() != 3 || patch[1] != patch[2]) {
    c.fail("patch_size", "is not of frames and two equal sides");
  }
  if (canvas.frames % patch[0] != 0) c.fail("patch_size", "does not divide the frames");
  return patch;
}

// In fp32, as the stream's norms and sums are.
struct WanBlock {
  Draft& d;
  std::int64_t hidden = 0, width = 0;
  RowAttention attention{};
  bool cross_norm = true;
  bool reads_image = false;
  Ref both = 0;  // an image's rows and the text's behind them

  [[nodiscard]] Ref modulated_rows(const std::string& norm, Ref x, const Parts& by,
                                   std::int64_t shift, std::int64_t scale) const {
    const Ref rows = modulated(d, d.norm(plain_norm(norm), d.wide(x)), by, shift, scale);
    return d.branch(d.narrow(d.marked(rows, RowMark::none)));
  }

  [[nodiscard]] Ref attend_to_text(Ref x, const JointRows& states) const {
    RowAttention a = attention;
    a.name = "attn2";
    a.turned.reset();
    if (!reads_image) return attend_rows(d, a, x, states.text);
    const Ref image = d.part_like(states.image, {}, both);
    const Ref text = d.part_like(states.text, {}, both);
    const Ref q = heads_of(d, a, a.q, "norm_q", x);
    const Ref k = heads_of(d, a, a.k, "norm_k", text);
    const Ref v = heads_of(d, a, a.v, "", text);
    const Ref image_k = heads_of(d, a, "add_k_proj", "norm_added_k", image);
    const Ref seen = d.attend_heads({}, q, image_k, heads_of(d, a, "add_v_proj", "", image));
    const Ref out = d.sum(d.attend_heads({}, q, k, v), seen);
    const Draft::In in(d, a.name);
    return d.linear({.name = a.o, .out = hidden}, out);
  }

  [[nodiscard]] Ref run(Ref x, const JointRows& states, Ref time) const {
    constexpr std::int64_t parts = 6;
    const Parts by{d.table_of_parts("scale_shift_table", parts, d.wide(time)), parts};
    Ref rows = modulated_rows("norm1", x, by, 0, 1);
    Ref out = attend_rows(d, attention, rows, rows);
    x = d.stream(d.narrow(gated(d, d.wide(x), out, by, 2)));
    rows = cross_norm ? d.branch(d.narrow(d.norm(row_norm("norm2"), d.wide(x)))) : x;
    x = d.stream(d.sum(x, attend_to_text(rows, states)));
    rows = modulated_rows("norm3", x, by, 3, 4);
    out = feed_forward(d, {.name = "ffn", .hidden = hidden, .width = width}, rows);
    const Ref wide = d.wide(x);
    return d.stream(d.narrow(gated(d, wide, d.wide(out), by, 5)));
  }
};

// What CLIP makes of a first frame, or of a first and a last one.
Ref wan_image_rows(const Config& c, Draft& d, std::int64_t width, std::int64_t hidden) {
  constexpr std::int64_t clip_rows = 257;
  const Draft::In in(d, "condition_embedder.image_embedder");
  const std::int64_t rows = c.optional_size("pos_embed_seq_len", std::nullopt).value_or(clip_rows);
  Ref x = d.enter(RowsInput{.name = "encoder_hidden_states_image", .rows = rows, .width = width});
  if (c.given("pos_embed_seq_len")) x = d.table("pos_embed", x);
  x = d.narrow(d.norm(row_norm("norm1"), d.wide(x)));
  x = feed_forward(d, {.hidden = hidden, .width = width, .activation = "gelu"}, x);
  return d.narrow(d.norm(row_norm("norm2"), d.wide(x)));
}

bool wan_reads_image(const Config& c, std::int64_t hidden) {
  const bool reads_image = c.given("image_dim");
  if (c.given("added_kv_proj_dim") != reads_image) {
    c.fail("added_kv_proj_dim", "is of models with an \"image_dim\", and these have it");
  }
  if (reads_image && c.size("added_kv_proj_dim", hidden) != hidden) {
    c.fail("added_kv_proj_dim", "is not num_attention_heads * attention_head_dim");
  }
  return reads_image;
}

ModelSpec wan(const Config& c) {
  Draft d;
  const Canvas canvas = read_canvas(c, {21, 60, 104});  // of 81 frames of 480 x 832
  const auto patch = read_patch(c, canvas);
  const std::int64_t heads = c.size("num_attention_heads", 40);
  const std::int64_t head_dim = c.size("attention_head_dim", 128);
  const std::int64_t hidden = heads * head_dim;
  const std::int64_t in = c.size("in_channels", 16);
  const std::int64_t out = c.optional_size("out_channels", 16).value_or(in);
  c.pass_over({"rope_max_seq_len", "qk_norm", "eps"});
  Ref x = d.stream(video_rows(d, "patch_embedding", in, hidden, patch, canvas, /*copied=*/true));
  constexpr auto* at = "condition_embedder";
  const Ref time = [&] {
    const Draft::In of(d, at);
    return time_embedding(d, "time_embedder", c.size("freq_dim", 256), hidden);
  }();
  const Ref all = d.linear({.name = "condition_embedder.time_proj", .out = 6 * hidden, .parts = 6},
                           d.activate("silu", time, "condition_embedder.act_fn"));
  JointRows states;
  states.text = two_products(d, "condition_embedder.text_embedder", hidden,
                             d.enter(RowsInput{.name = "encoder_hidden_states",
                                               .width = c.size("text_dim", 4096),
                                               .is_text_long = true}),
                             true, "gelu_pytorch_tanh");
  const bool reads_image = wan_reads_image(c, hidden);
  if (reads_image) {
    states.image = wan_image_rows(c, d, c.size("image_dim", 1280), hidden);
  }
  const Ref both = reads_image ? d.behind({states.image, states.text}) : 0;
  const WanBlock block{.d = d,
                       .hidden = hidden,
                       .width = c.size("ffn_dim", 13824),
                       .attention = {.name = "attn1",
                                     .heads = heads,
                                     .head_dim = head_dim,
                                     .norm = NormKind::rms_fused,
                                     .norm_whole = true,
                                     .turned = Turned{.table = "rope"}},
                       .cross_norm = c.flag("cross_attn_norm", true),
                       .reads_image = reads_image,
                       .both = both};
  const std::int64_t layers = layers_of(c, "num_layers", 40);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("blocks", i, "block");
    x = block.run(x, states, all);
  }
  d.outside("head");
  const Ref by = d.table_of_parts("scale_shift_table", 2, time);
  x = block.modulated_rows("norm_out", x, {by, 2}, 0, 1);
  d.sum_loss(d.linear({.name = "proj_out", .out = out * patch[0] * patch[1] * patch[2]}, x));
  d.note(
      fmt::format("{} blocks: attention of {} heads of {}, to the text, and an MLP of {}; "
                  "all but the second modulated; {} frames of latents",
                  layers, heads, head_dim, block.width, canvas.frames));
  return drafted(d, {.side = canvas.rows, .coarsest = patch[1], .text = 512});
}

void check_ltx(const Config& c) {
  c.pass_over({"norm_eps"});
  for (const char* key : {"patch_size", "patch_size_t"}) {
    if (c.size(key, 1) != 1) c.fail(key, "only 1 is supported: rows come packed");
  }
  if (c.flag("norm_elementwise_affine", false)) {
    c.fail("norm_elementwise_affine", "true is not supported");
  }
  if (c.text("qk_norm", "rms_norm_across_heads") != "rms_norm_across_heads") {
    c.fail("qk_norm", "only \"rms_norm_across_heads\" is supported");
  }
}

// LTX-Video's: norms without parameters, one modulation with a table of each block.
ModelSpec ltx_video(const Config& c) {
  Draft d;
  const Canvas canvas = read_canvas(c, {21, 16, 22});  // of 161 frames of 512 x 704
  const std::int64_t heads = c.size("num_attention_heads", 32);
  const std::int64_t head_dim = c.size("attention_head_dim", 64);
  const std::int64_t hidden = heads * head_dim;
  const std::int64_t in = c.size("in_channels", 128);
  const std::int64_t out = c.optional_size("out_channels", 128).value_or(in);
  check_ltx(c);
  Ref x = d.stream(d.linear({.name = "proj_in", .out = hidden},
                            d.enter(RowsInput{.name = "hidden_states",
                                              .width = in,
                                              .patch = 1,
                                              .frames = canvas.frames,
                                              .aspect = {canvas.rows, canvas.columns}})));
  const Ref time = time_embedding(d, "time_embed.emb.timestep_embedder", 256, hidden);
  const Ref all = modulation(d, "time_embed", 6, hidden, time);
  const Ref text = two_products(d, "caption_projection", hidden,
                                d.enter(RowsInput{.name = "encoder_hidden_states",
                                                  .width = c.size("caption_channels", 4096),
                                                  .is_text_long = true}),
                                true, "gelu_pytorch_tanh");
  if (c.size("cross_attention_dim", 2048) != hidden) {
    c.fail("cross_attention_dim", "is not num_attention_heads * attention_head_dim");
  }
  RowAttention among{.name = "attn1",
                     .heads = heads,
                     .head_dim = head_dim,
                     .bias = c.flag("attention_bias", true),
                     .o_bias = c.flag("attention_out_bias", true),
                     .norm = NormKind::rms_fused,
                     .norm_whole = true,
                     .turned = Turned{.table = "rope", .whole = true}};
  RowAttention to_text = among;
  to_text.name = "attn2";
  to_text.turned.reset();
  const FeedForwardRows mlp{.hidden = hidden,
                            .width = 4 * hidden,
                            .activation = activation_of(c, "activation_fn", "gelu-approximate")};
  const std::int64_t layers = layers_of(c, "num_layers", 28);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    const Ref normed = d.norm({NormKind::rms_t5_plain, "norm1"}, x);
    const Parts by{d.table_of_parts("scale_shift_table", 6, all, /*no_batch=*/true)};
    const Ref rows = modulated(d, normed, by, 0, 1);
    x = gated(d, x, attend_rows(d, among, rows, rows), by, 2);
    x = d.stream(d.sum(x, attend_rows(d, to_text, x, text)));
    const Ref mixed = modulated(d, d.norm({NormKind::rms_t5_plain, "norm2"}, x), by, 3, 4);
    x = gated(d, x, feed_forward(d, mlp, mixed), by, 5);
  }
  d.outside("head");
  const Parts by{d.table_of_parts("scale_shift_table", 2, time, /*no_batch=*/true), 2};
  x = modulated(d, d.norm(plain_norm("norm_out"), x), by, 0, 1);
  d.sum_loss(d.linear({.name = "proj_out", .out = out}, x));
  d.note(
      fmt::format("{} blocks: attention of {} heads of {}, to the text, and an MLP of {}; one "
                  "modulation and a table each; {} frames of latents",
                  layers, heads, head_dim, 4 * hidden, canvas.frames));
  return drafted(d, {.side = canvas.rows, .coarsest = 1, .text = 128});
}

}  // namespace

std::vector<Family> video_diffusion_families() {
  return {{"WanTransformer3DModel", "wan", wan},
          {"LTXVideoTransformer3DModel", "ltx_video", ltx_video}};
}

}  // namespace shardsim::models
