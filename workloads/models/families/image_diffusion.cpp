// Transformers that take noise off latents of images, under diffusers' names: FLUX.2, Qwen-Image
// (arXiv:2508.02324).
#include <fmt/format.h>

#include "workloads/models/families/diffusion_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

constexpr std::int64_t usual_side = 128;  // of latents: images of 1024

// Rows of 2 x 2 places, as pipelines put them together.
Ref packed_rows(Draft& d, std::int64_t width) {
  return d.enter(RowsInput{.name = "hidden_states", .width = width, .patch = 2});
}

Ref text_rows(Draft& d, std::int64_t width) {
  return d.enter(RowsInput{.name = "encoder_hidden_states", .width = width, .is_text_long = true});
}

void check_axes(const Config& c, const std::vector<std::int64_t>& axes, std::int64_t head_dim) {
  std::int64_t turned = 0;
  for (const std::int64_t dims : axes) turned += dims;
  if (turned != head_dim) c.fail("axes_dims_rope", "does not add up to attention_head_dim");
}

struct Flux2 {
  Draft& d;
  std::int64_t hidden = 0, mlp = 0;
  RowAttention attention{};

  [[nodiscard]] JointRows block(const JointRows& x, const Parts& image, const Parts& text) const {
    const JointRows normed{modulated(d, d.norm(plain_norm("norm1"), x.image), image, 0, 1),
                           modulated(d, d.norm(plain_norm("norm1_context"), x.text), text, 0, 1)};
    const JointAttention joint{
        .rows = attention, .turn = JointTurn::both_joined, .copies_parts = false};
    const JointRows out = attend_jointly(d, joint, normed);
    return {mix("norm2", "ff", gated(d, x.image, out.image, image, 2), image),
            mix("norm2_context", "ff_context", gated(d, x.text, out.text, text, 2), text)};
  }

  [[nodiscard]] Ref mix(const std::string& norm, const std::string& ff, Ref x,
                        const Parts& by) const {
    const Ref rows = modulated(d, d.norm(plain_norm(norm), x), by, 3, 4);
    const Draft::In in(d, ff);
    const Ref out = silu_gated(d, "linear_in", "linear_out", mlp, hidden, false, rows);
    return gated(d, x, out, by, 5);
  }

  // Attention and an MLP of the same rows, through one product each way: the MLP is so many times
  // as wide as all heads, and lies beside them by heads.
  [[nodiscard]] Ref single(Ref x, const Parts& by) const {
    const std::int64_t ratio = mlp / hidden;
    const std::int64_t parts = 3 + 2 * ratio;
    const Ref rows = modulated(d, d.norm(plain_norm("norm"), x), by, 0, 1);
    const Draft::In in(d, "attn");
    const Ref all = d.linear({.name = "to_qkv_mlp_proj",
                              .out = parts * hidden,
                              .bias = false,
                              .heads = attention.heads,
                              .parts = parts},
                             rows);
    const auto head = [&](std::int64_t i, const char* norm) {
      const Ref one = d.norm({attention.norm, norm}, d.width_part(i, parts, all));
      return d.turn(*attention.turned, one);
    };
    const Ref q = head(0, "norm_q");
    const Ref k = head(1, "norm_k");
    const Ref seen = d.attend_heads({}, q, k, d.width_part(2, parts, all));
    const Ref gate = d.activate("silu", d.width_part(3, parts, all, ratio), "mlp_act_fn.gate_fn");
    const Ref inner = d.product(gate, d.width_part(3 + ratio, parts, all, ratio));
    const Ref both = d.beside({seen, inner});
    const Ref out = d.linear({.name = "to_out", .out = hidden, .bias = false}, both);
    return gated(d, x, out, by, 2);
  }
};

Ref flux2_time(const Config& c, Draft& d, std::int64_t hidden) {
  const Draft::In at(d, "time_guidance_embed");
  const std::int64_t numbers = c.size("timestep_guidance_channels", 256);
  const Ref time = time_embedding(d, "timestep_embedder", numbers, hidden, /*bias=*/false);
  if (!c.flag("guidance_embeds", true)) return time;
  return d.sum(time, time_embedding(d, "guidance_embedder", numbers, hidden, /*bias=*/false));
}

ModelSpec flux2(const Config& c) {
  Draft d;
  const std::int64_t heads = c.size("num_attention_heads", 48);
  const std::int64_t head_dim = c.size("attention_head_dim", 128);
  const std::int64_t hidden = heads * head_dim;
  const std::int64_t in = c.size("in_channels", 128);
  const double ratio = c.ratio("mlp_ratio", 3);
  const auto mlp = static_cast<std::int64_t>(ratio * static_cast<double>(hidden));
  if (mlp <= 0 || mlp % hidden != 0) c.fail("mlp_ratio", "only whole numbers are supported");
  c.pass_over({"rope_theta", "eps"});
  check_axes(c, c.sizes("axes_dims_rope", {32, 32, 32, 32}), head_dim);
  if (c.size("patch_size", 1) != 1) c.fail("patch_size", "only 1 is supported: rows come packed");
  const Flux2 net{.d = d,
                  .hidden = hidden,
                  .mlp = mlp,
                  .attention = {.name = "attn",
                                .heads = heads,
                                .head_dim = head_dim,
                                .bias = false,
                                .o_bias = false,
                                .norm = NormKind::rms_fused,
                                .turned = Turned{.table = "rope"}}};
  const Ref time = flux2_time(c, d, hidden);
  const Ref by_image = modulation(d, "double_stream_modulation_img", 6, hidden, time, false);
  const Ref by_text = modulation(d, "double_stream_modulation_txt", 6, hidden, time, false);
  const Ref by_both = modulation(d, "single_stream_modulation", 3, hidden, time, false);
  JointRows x;
  x.image =
      d.stream(d.linear({.name = "x_embedder", .out = hidden, .bias = false}, packed_rows(d, in)));
  x.text = d.stream(d.linear({.name = "context_embedder", .out = hidden, .bias = false},
                             text_rows(d, c.size("joint_attention_dim", 15360))));
  const JointRows entered = x;
  const std::int64_t layers = layers_of(c, "num_layers", 8);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    x = net.block(x, {by_image, 6}, {by_text, 6});
  }
  d.outside("joined");
  Ref rows = d.stream(d.behind({x.text, x.image}));
  const std::int64_t single = layers_of(c, "num_single_layers", 48);
  for (std::int64_t i = 0; i < single; ++i) {
    d.layer("single_transformer_blocks", i, "single");
    rows = net.single(rows, {by_both, 3});
  }
  d.outside("head");
  rows = d.part_like(entered.image, {}, rows);
  rows = modulated_end(d, "norm_out", end_norm(hidden), rows, time, /*bias=*/false);
  const std::int64_t out = c.optional_size("out_channels", std::nullopt).value_or(in);
  d.sum_loss(d.linear({.name = "proj_out", .out = out, .bias = false}, rows));
  d.note(
      fmt::format("{} blocks: joint attention of image and text, {} heads of {}, gated MLPs of "
                  "{}; one modulation for all",
                  layers, heads, head_dim, mlp));
  d.note(fmt::format("{} blocks of one stream: attention and an MLP of the same rows", single));
  return drafted(d, {.side = usual_side, .coarsest = 2, .text = 512});
}

// An image's and a text's rows, each with its own modulation, norms and MLP.
struct QwenImage {
  Draft& d;
  std::int64_t hidden = 0;
  RowAttention attention{};

  [[nodiscard]] Parts six(const std::string& module, Ref time) const {
    const Ref active = d.activate("silu", time, module + ".0");
    return {d.linear({.name = module + ".1", .out = 6 * hidden, .parts = 6}, active)};
  }

  [[nodiscard]] Ref mix(const std::string& prefix, Ref x, const Parts& by) const {
    const Ref rows = modulated(d, d.norm(plain_norm(prefix + "_norm2"), x), by, 3, 4);
    const Ref out =
        feed_forward(d, {.name = prefix + "_mlp", .hidden = hidden, .width = 4 * hidden}, rows);
    return gated(d, x, out, by, 5);
  }

  [[nodiscard]] JointRows block(const JointRows& x, Ref time) const {
    const Parts image = six("img_mod", time);
    const Parts text = six("txt_mod", time);
    const JointRows normed{modulated(d, d.norm(plain_norm("img_norm1"), x.image), image, 0, 1),
                           modulated(d, d.norm(plain_norm("txt_norm1"), x.text), text, 0, 1)};
    const JointRows out = attend_jointly(
        d, {.rows = attention, .turn = JointTurn::both_before, .copies_parts = true}, normed);
    return {mix("img", gated(d, x.image, out.image, image, 2), image),
            mix("txt", gated(d, x.text, out.text, text, 2), text)};
  }
};

ModelSpec qwen_image(const Config& c) {
  Draft d;
  const std::int64_t heads = c.size("num_attention_heads", 24);
  const std::int64_t head_dim = c.size("attention_head_dim", 128);
  const std::int64_t hidden = heads * head_dim;
  const std::int64_t in = c.size("in_channels", 64);
  const std::int64_t out = c.optional_size("out_channels", 16).value_or(in);
  const std::int64_t patch = c.size("patch_size", 2);
  check_axes(c, c.sizes("axes_dims_rope", {16, 56, 56}), head_dim);
  for (const char* key : {"zero_cond_t", "use_layer3d_rope", "use_additional_t_cond"}) {
    if (c.flag(key, false)) c.fail(key, "true is not supported: it reads several images");
  }
  c.pass_over({"guidance_embeds"});  // the class does not look at it
  const QwenImage net{
      .d = d,
      .hidden = hidden,
      .attention = {.name = "attn",
                    .heads = heads,
                    .head_dim = head_dim,
                    .norm = NormKind::rms_t5,
                    .turned = Turned{.table = "rope", .complex = true, .of = 4096}}};
  JointRows x;
  x.image = d.stream(d.linear({.name = "img_in", .out = hidden}, packed_rows(d, in)));
  const std::int64_t text = c.size("joint_attention_dim", 3584);
  x.text = d.stream(d.linear({.name = "txt_in", .out = hidden},
                             d.norm({NormKind::rms_t5, "txt_norm"}, text_rows(d, text))));
  const Ref time = [&] {
    const Draft::In at(d, "time_text_embed");
    return time_embedding(d, "timestep_embedder", 256, hidden);
  }();
  const std::int64_t layers = layers_of(c, "num_layers", 60);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    x = net.block(x, time);
  }
  d.outside("head");
  const Ref rows = modulated_end(d, "norm_out", end_norm(hidden), x.image, time);
  d.sum_loss(d.linear({.name = "proj_out", .out = patch * patch * out}, rows));
  d.note(
      fmt::format("{} blocks: joint attention of image and text, {} heads of {}; MLPs of {}; "
                  "all modulated",
                  layers, heads, head_dim, 4 * hidden));
  return drafted(d, {.side = usual_side, .coarsest = 2, .text = 512});
}

}  // namespace

std::vector<Family> image_diffusion_families() {
  return {{"Flux2Transformer2DModel", "flux2", flux2},
          {"QwenImageTransformer2DModel", "qwen_image", qwen_image}};
}

}  // namespace shardsim::models
