// CogView 3 Plus (arXiv:2403.05121) and CogView 4, which take noise off latents of images, under
// diffusers' names: text and image are one stream for attention and the MLP, each modulated by
// parts of its own.
//
// Source: diffusers 0.42.1, transformer_cogview3plus.py, transformer_cogview4.py.
#include <fmt/format.h>

#include "workloads/models/families/diffusion_rows.hpp"

namespace shardsim::models {
namespace {

struct CogViewNames {
  std::string image_norm, text_norm;
  bool activates = false;    // the time in each block; else once
  bool turned = false;       // the image's places
  bool interleaved = false;  // the image's and the text's parts take turns
};

struct CogView {
  Draft& d;
  const CogViewNames& names;
  std::int64_t hidden = 0;
  RowAttention attention{};

  // shift, scale and gate of attention and of the MLP: which of the twelve.
  [[nodiscard]] std::int64_t part(std::int64_t number, bool of_text) const {
    constexpr std::int64_t each = 6;
    if (names.interleaved) return 2 * number + (of_text ? 1 : 0);
    return number + (of_text ? each : 0);
  }
  [[nodiscard]] Ref modulate(const std::string& norm, Ref x, const Parts& by, std::int64_t first,
                             bool of_text) const {
    return modulated(d, d.norm(plain_norm(norm), x), by, part(first, of_text),
                     part(first + 1, of_text));
  }
  [[nodiscard]] JointRows onto(const JointRows& x, const Parts& by, std::int64_t gate,
                               Ref both) const {
    return {gated(d, x.image, d.part_like(x.image, {}, both), by, part(gate, false)),
            gated(d, x.text, d.part_like(x.text, {}, both), by, part(gate, true))};
  }

  [[nodiscard]] Ref attend(Ref rows, const JointRows& like) const {
    const auto turned = [&](const char* module, const char* norm) {
      const Ref all = heads_of(d, attention, module, norm, rows);
      if (!names.turned) return all;
      return d.behind({d.part_like(like.text, {}, all),
                       d.turn({.table = "rope"}, d.part_like(like.image, {}, all))});
    };
    const Ref q = turned("to_q", "norm_q");
    const Ref k = turned("to_k", "norm_k");
    const Ref seen =
        d.attend_heads({.by_heads = true}, q, k, heads_of(d, attention, "to_v", "", rows));
    const Draft::In in(d, attention.name);
    return d.linear({.name = attention.o, .out = hidden}, seen);
  }

  [[nodiscard]] JointRows block(JointRows x, Ref time) const {
    constexpr std::int64_t parts = 12;
    constexpr std::int64_t mlp_shift = 3, gate = 2, mlp_gate = 5;
    const Ref read = names.activates ? d.activate("silu", time, "norm1.silu") : time;
    const Parts by{d.linear({.name = "norm1.linear", .out = parts * hidden, .parts = parts}, read),
                   parts};
    const JointRows first{modulate(names.image_norm, x.image, by, 0, false),
                          modulate(names.text_norm, x.text, by, 0, true)};
    x = onto(x, by, gate, attend(d.behind({first.text, first.image}), x));
    const JointRows second{modulate("norm2", x.image, by, mlp_shift, false),
                           modulate("norm2_context", x.text, by, mlp_shift, true)};
    const FeedForwardRows mlp{.hidden = hidden, .width = 4 * hidden};
    if (names.activates) {
      return onto(x, by, mlp_gate, feed_forward(d, mlp, d.behind({second.text, second.image})));
    }
    return {gated(d, x.image, feed_forward(d, mlp, second.image), by, part(mlp_gate, false)),
            gated(d, x.text, feed_forward(d, mlp, second.text), by, part(mlp_gate, true))};
  }
};

Ref cogview_time(const Config& c, Draft& d, std::int64_t hidden) {
  constexpr std::int64_t conditions = 3;  // the image's size, the crop's corner, the size wanted
  const std::int64_t width = c.size("time_embed_dim", 512);
  const std::int64_t each = 2 * c.size("condition_dim", 256);
  const Draft::In in(d, "time_condition_embed");
  const Ref time = time_embedding(d, "timestep_embedder", hidden, width);
  const Ref sizes =
      d.enter(RowsInput{.name = "conditions", .width = conditions * each, .constant = true});
  return d.sum(time, two_products(d, "condition_embedder", width, sizes));
}

ModelSpec cogview(const Config& c, const CogViewNames& names, std::int64_t layers) {
  Draft d;
  const std::int64_t side = c.size("sample_size", 128);
  const std::int64_t patch = c.size("patch_size", 2);
  const std::int64_t heads = c.size("num_attention_heads", 64);
  const std::int64_t head_dim = c.size("attention_head_dim", 40);
  const std::int64_t hidden = heads * head_dim;
  static_cast<void>(c.divided("sample_size", side, "patch_size", patch));
  c.pass_over({"pos_embed_max_size", "rope_axes_dim"});  // of tables that are computed
  const CogView net{
      .d = d,
      .names = names,
      .hidden = hidden,
      .attention = {
          .name = "attn1", .heads = heads, .head_dim = head_dim, .norm = NormKind::layer_fixed}};
  JointRows x;
  const Ref pixels = d.enter(RowsInput{.name = "patches",
                                       .width = patch * patch * c.size("in_channels", 16),
                                       .constant = true,
                                       .patch = patch});
  x.image = d.linear({.name = "patch_embed.proj", .out = hidden}, pixels);
  if (!names.turned) x.image = d.constant_table("patch_embed.places", x.image);
  x.image = d.stream(x.image);
  x.text = d.stream(d.linear({.name = "patch_embed.text_proj", .out = hidden},
                             d.enter(RowsInput{.name = "encoder_hidden_states",
                                               .width = c.size("text_embed_dim", 4096),
                                               .is_text_long = true})));
  Ref time = cogview_time(c, d, hidden);
  if (!names.activates) time = d.activate("silu", time, "time_condition_embed.silu");
  layers = layers_of(c, "num_layers", layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    x = net.block(x, time);
  }
  d.outside("head");
  Ref rows = x.image;
  if (names.activates) {
    rows = modulated_end(d, "norm_out", end_norm(hidden), rows, time);
  } else {
    const Parts by{d.linear({.name = "norm_out.linear", .out = 2 * hidden, .parts = 2}, time), 2};
    rows = modulated(d, d.norm(plain_norm("norm_out.norm"), rows), by, 1, 0);
  }
  d.sum_loss(
      d.linear({.name = "proj_out", .out = patch * patch * c.size("out_channels", 16)}, rows));
  d.note(
      fmt::format("{} blocks of one stream of text and image: attention, {} heads of {}, queries "
                  "and keys normed; an MLP of {}; all modulated",
                  layers, heads, head_dim, 4 * hidden));
  // The pipelines' max_sequence_length.
  constexpr std::int64_t text_of_4 = 1024, text_of_3_plus = 224;
  const std::int64_t text = names.turned ? text_of_4 : text_of_3_plus;
  return drafted(d, {.side = side, .coarsest = patch, .text = text});
}

ModelSpec cogview3_plus(const Config& c) {
  return cogview(c, {.image_norm = "norm1.norm_x", .text_norm = "norm1.norm_c", .activates = true},
                 30);
}

ModelSpec cogview4(const Config& c) {
  return cogview(c,
                 {.image_norm = "norm1.norm",
                  .text_norm = "norm1.norm_context",
                  .turned = true,
                  .interleaved = true},
                 30);
}

}  // namespace

std::vector<Family> cogview_families() {
  return {{"CogView3PlusTransformer2DModel", "cogview3plus", cogview3_plus},
          {"CogView4Transformer2DModel", "cogview4", cogview4}};
}

}  // namespace shardsim::models
