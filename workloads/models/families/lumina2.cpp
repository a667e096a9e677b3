// Lumina-Image 2.0 (arXiv:2503.21758), which takes noise off latents of images, under diffusers'
// names: text and image are refined apart, then are one stream; norms before and behind branches,
// of which the time scales the former and opens the gates of the latter.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/models/families/diffusion_rows.hpp"

namespace shardsim::models {
namespace {

struct Lumina2 {
  Draft& d;
  std::int64_t hidden = 0, mlp = 0;
  RowAttention attention{};

  [[nodiscard]] Ref normed(const std::string& name, Ref x) const {
    return d.norm({NormKind::rms_t5, name}, x);
  }

  // silu in fp32.
  [[nodiscard]] Ref feed(Ref x) const {
    const Draft::In in(d, "feed_forward");
    Ref gate = d.linear({.name = "linear_1", .out = mlp, .bias = false, .inner = true}, x);
    gate = d.narrow(d.activate("silu", d.wide(gate), "silu"));
    const Ref up = d.linear({.name = "linear_3", .out = mlp, .bias = false, .inner = true}, x);
    return d.linear({.name = "linear_2", .out = hidden, .bias = false}, d.product(gate, up));
  }

  [[nodiscard]] Ref attend(const std::string& table, Ref x) const {
    RowAttention a = attention;
    a.turned->table = table;
    return attend_rows(d, a, x, x);
  }

  [[nodiscard]] Ref plain(const std::string& table, Ref x) const {
    const Ref out = attend(table, d.branch(normed("norm1", x)));
    x = d.stream(d.sum(x, normed("norm2", out)));
    return d.stream(d.sum(x, normed("ffn_norm2", feed(d.branch(normed("ffn_norm1", x))))));
  }

  [[nodiscard]] Ref timed(const std::string& table, Ref x, Ref time) const {
    constexpr std::int64_t parts = 4;  // scale and gate of attention and of the MLP
    const Ref by = modulation(d, "norm1", parts, hidden, time);
    const auto scaled = [&](Ref rows, std::int64_t i) {
      return d.branch(d.product(rows, d.scaled(d.width_part(i, parts, by))));
    };
    const auto onto = [&](Ref out, std::int64_t i) {
      const Ref gate = d.activate("tanh", d.width_part(i, parts, by), "gate");
      return d.stream(d.sum(x, d.product(out, gate)));
    };
    const Ref seen = attend(table, scaled(normed("norm1.norm", x), 0));
    x = onto(normed("norm2", seen), 1);
    const Ref mixed = feed(scaled(normed("ffn_norm1", x), 2));
    return onto(normed("ffn_norm2", mixed), 3);
  }
};

std::int64_t lumina2_width(const Config& c, std::int64_t hidden) {
  const std::int64_t multiple = c.size("multiple_of", 256);
  auto wide = 4 * hidden;
  if (c.given("ffn_dim_multiplier")) {
    wide = static_cast<std::int64_t>(c.ratio("ffn_dim_multiplier", 1) * static_cast<double>(wide));
  }
  return (wide + multiple - 1) / multiple * multiple;
}

void check_axes_of(const Config& c, std::int64_t head_dim) {
  std::int64_t turned = 0;
  for (const std::int64_t dims : c.sizes("axes_dim_rope", {32, 32, 32})) turned += dims;
  if (turned != head_dim) c.fail("axes_dim_rope", "does not add up to a head's size");
}

JointRows lumina2_rows(const Config& c, Draft& d, const Lumina2& net, std::int64_t width,
                       std::int64_t patch) {
  const std::int64_t text_width = c.size("cap_feat_dim", 1024);
  const Ref states = d.enter(
      RowsInput{.name = "encoder_hidden_states", .width = text_width, .is_text_long = true});
  const Ref text =
      d.stream(d.linear({.name = "time_caption_embed.caption_embedder.1", .out = net.hidden},
                        net.normed("time_caption_embed.caption_embedder.0", states)));
  const Ref image = d.stream(d.linear(
      {.name = "x_embedder", .out = net.hidden},
      d.enter(RowsInput{.name = "patches", .width = width, .constant = true, .patch = patch})));
  return {image, text};
}

ModelSpec lumina2(const Config& c) {
  Draft d;
  const std::int64_t side = c.size("sample_size", 128);
  const std::int64_t patch = c.size("patch_size", 2);
  const std::int64_t in = c.size("in_channels", 16);
  const std::int64_t hidden = c.size("hidden_size", 2304);
  const std::int64_t heads = c.size("num_attention_heads", 24);
  const std::int64_t head_dim = c.divided("hidden_size", hidden, "num_attention_heads", heads);
  const std::int64_t kv_heads = c.size("num_kv_heads", 8);
  static_cast<void>(c.divided("num_attention_heads", heads, "num_kv_heads", kv_heads));
  static_cast<void>(c.divided("sample_size", side, "patch_size", patch));
  check_axes_of(c, head_dim);
  c.pass_over({"axes_lens", "norm_eps", "scaling_factor"});
  const Lumina2 net{
      .d = d,
      .hidden = hidden,
      .mlp = lumina2_width(c, hidden),
      .attention = {
          .name = "attn",
          .heads = heads,
          .head_dim = head_dim,
          .kv_heads = kv_heads,
          .bias = false,
          .o_bias = false,
          .norm = NormKind::rms_t5,
          .turned = Turned{.table = "rope", .complex = true, .each = true, .fp64 = true}}};
  constexpr std::int64_t widest = 1024;  // of the time
  const std::int64_t time_width = std::min(hidden, widest);
  const Ref time = time_embedding(d, "time_caption_embed.timestep_embedder", 256, time_width);
  auto [image, text] = lumina2_rows(c, d, net, patch * patch * in, patch);
  const std::int64_t refiners = layers_of(c, "num_refiner_layers", 2);
  for (std::int64_t i = 0; i < refiners; ++i) {
    d.layer("context_refiner", i, "text");
    text = net.plain("rope.text", text);
  }
  for (std::int64_t i = 0; i < refiners; ++i) {
    d.layer("noise_refiner", i, "image");
    image = net.timed("rope.image", image, time);
  }
  d.outside("joined");
  Ref x = d.stream(d.behind({text, image}));
  const std::int64_t layers = layers_of(c, "num_layers", 26);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("layers", i, "block");
    x = net.timed("rope", x, time);
  }
  d.outside("head");
  const Ref scale = d.linear({.name = "norm_out.linear_1", .out = hidden},
                             d.activate("silu", time, "norm_out.silu"));
  x = d.product(d.norm(plain_norm("norm_out.norm"), x), d.scaled(scale));
  const std::int64_t out = c.optional_size("out_channels", std::nullopt).value_or(in);
  d.sum_loss(d.linear({.name = "norm_out.linear_2", .out = patch * patch * out}, x));
  d.note(
      fmt::format("{} blocks of each kind of rows, {} of both: attention, {} heads of {}, {} of "
                  "keys; gated MLPs of {}",
                  refiners, layers, heads, head_dim, kv_heads, net.mlp));
  return drafted(d, {.side = side, .coarsest = patch, .text = 256});
}

}  // namespace

std::vector<Family> lumina2_families() {
  return {{"Lumina2Transformer2DModel", "lumina2", lumina2}};
}

}  // namespace shardsim::models
