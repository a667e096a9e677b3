// Z-Image (arXiv:2511.22699), which takes noise off latents of images, under diffusers' names:
// image and text are refined apart, then are one stream; the time scales what enters a branch and
// opens the gates of what leaves it. Rows of either are a multiple of 32; files have no Omni parts.
#include <fmt/format.h>

#include "workloads/models/families/diffusion_rows.hpp"

namespace shardsim::models {
namespace {

struct ZImage {
  Draft& d;
  std::int64_t hidden = 0;
  RowAttention attention{};

  [[nodiscard]] Ref normed(const std::string& name, Ref x) const {
    return d.norm({NormKind::rms_t5, name}, x);
  }

  [[nodiscard]] Ref feed(Ref x) const {
    constexpr double wider = 8.0 / 3;
    const auto mlp = static_cast<std::int64_t>(static_cast<double>(hidden) * wider);
    const Draft::In in(d, "feed_forward");
    const Ref gate = d.activate(
        "silu", d.linear({.name = "w1", .out = mlp, .bias = false, .inner = true}, x), "silu");
    const Ref up = d.linear({.name = "w3", .out = mlp, .bias = false, .inner = true}, x);
    return d.linear({.name = "w2", .out = hidden, .bias = false}, d.product(gate, up));
  }

  [[nodiscard]] Ref attend(const std::string& table, Ref x) const {
    RowAttention a = attention;
    a.turned->table = table;
    return attend_rows(d, a, x, x);
  }

  [[nodiscard]] Ref plain(const std::string& table, Ref x) const {
    const Ref out = attend(table, d.branch(normed("attention_norm1", x)));
    x = d.stream(d.sum(x, normed("attention_norm2", out)));
    return d.stream(d.sum(x, normed("ffn_norm2", feed(d.branch(normed("ffn_norm1", x))))));
  }

  [[nodiscard]] Ref timed(const std::string& table, Ref x, Ref time) const {
    constexpr std::int64_t parts = 4;  // scale and gate of attention and of the MLP
    const Ref by =
        d.linear({.name = "adaLN_modulation.0", .out = parts * hidden, .parts = parts}, time);
    const auto scaled = [&](Ref rows, std::int64_t i) {
      return d.branch(d.product(rows, d.scaled(d.width_part(i, parts, by))));
    };
    const auto onto = [&](Ref out, std::int64_t i) {
      const Ref gate = d.activate("tanh", d.width_part(i, parts, by), "gate");
      return d.stream(d.sum(x, d.product(out, gate)));
    };
    const Ref seen = attend(table, scaled(normed("attention_norm1", x), 0));
    x = onto(normed("attention_norm2", seen), 1);
    const Ref mixed = feed(scaled(normed("ffn_norm1", x), 2));
    return onto(normed("ffn_norm2", mixed), 3);
  }
};

constexpr std::int64_t time_width = 256;

Ref z_image_time(Draft& d) {
  constexpr std::int64_t between = 1024;
  Ref time = d.enter(RowsInput{.name = "time", .width = time_width, .constant = true});
  time = d.linear({.name = "t_embedder.mlp.0", .out = between}, time);
  return d.linear({.name = "t_embedder.mlp.2", .out = time_width},
                  d.activate("silu", time, "t_embedder.mlp.1"));
}

// The one size of patches that a file has.
std::int64_t z_image_patch(const Config& c) {
  const auto patches = c.sizes("all_patch_size", {2});
  const auto frames = c.sizes("all_f_patch_size", {1});
  if (patches.size() != 1) c.fail("all_patch_size", "several sizes are not supported");
  if (frames.size() != 1 || frames[0] != 1) c.fail("all_f_patch_size", "only [1] is supported");
  return patches[0];
}

void check_z_image(const Config& c, std::int64_t hidden, std::int64_t heads) {
  const std::int64_t head_dim = c.divided("dim", hidden, "n_heads", heads);
  std::int64_t turned = 0;
  for (const std::int64_t dims : c.sizes("axes_dims", {32, 48, 48})) turned += dims;
  if (turned != head_dim) c.fail("axes_dims", "does not add up to a head's size");
  if (c.given("siglip_feat_dim")) c.fail("siglip_feat_dim", "is not supported");
  if (hidden < time_width) c.fail("dim", "is less than the time's 256 numbers");
  c.pass_over({"n_kv_heads", "norm_eps", "t_scale", "axes_lens"});  // the class reads as many keys
}

ModelSpec z_image(const Config& c) {
  Draft d;
  const std::int64_t patch = z_image_patch(c);
  const std::int64_t in = c.size("in_channels", 16);
  const std::int64_t hidden = c.size("dim", 3840);
  const std::int64_t heads = c.size("n_heads", 30);
  check_z_image(c, hidden, heads);
  const ZImage net{
      .d = d,
      .hidden = hidden,
      .attention = {.name = "attention",
                    .heads = heads,
                    .head_dim = hidden / heads,
                    .bias = false,
                    .o_bias = false,
                    .norm = c.flag("qk_norm", true) ? NormKind::rms_t5 : NormKind::none,
                    .turned = Turned{.table = "rope", .complex = true, .each = true}}};
  const std::string size = fmt::format("{}-1", patch);
  const Ref time = z_image_time(d);
  Ref image = d.stream(d.linear(
      {.name = "all_x_embedder." + size, .out = hidden},
      d.enter(RowsInput{
          .name = "patches", .width = patch * patch * in, .constant = true, .patch = patch})));
  const Ref states = d.enter(
      RowsInput{.name = "cap_feats", .width = c.size("cap_feat_dim", 2560), .is_text_long = true});
  Ref text = d.stream(
      d.linear({.name = "cap_embedder.1", .out = hidden}, net.normed("cap_embedder.0", states)));
  d.stored("x_pad_token", {1, hidden});  // in place of rows that are there for the multiple alone
  d.stored("cap_pad_token", {1, hidden});
  const std::int64_t refiners = layers_of(c, "n_refiner_layers", 2);
  for (std::int64_t i = 0; i < refiners; ++i) {
    d.layer("noise_refiner", i, "image");
    image = net.timed("rope.image", image, time);
  }
  for (std::int64_t i = 0; i < refiners; ++i) {
    d.layer("context_refiner", i, "text");
    text = net.plain("rope.text", text);
  }
  d.outside("joined");
  Ref x = d.stream(d.behind({image, text}));
  const std::int64_t layers = layers_of(c, "n_layers", 30);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("layers", i, "block");
    x = net.timed("rope", x, time);
  }
  d.outside("head");
  const Draft::In last(d, "all_final_layer." + size);
  const Ref scale = d.linear({.name = "adaLN_modulation.1", .out = hidden},
                             d.activate("silu", time, "adaLN_modulation.0"));
  x = d.product(d.norm(plain_norm("norm_final"), x), d.scaled(scale));
  d.sum_loss(d.linear({.name = "linear", .out = patch * patch * in}, x));
  d.note(
      fmt::format("{} blocks of each kind of rows, {} of both: attention, {} heads of {}; gated "
                  "MLPs",
                  refiners, layers, heads, hidden / heads));
  constexpr std::int64_t side = 128;    // of latents of 1,024 pixels
  constexpr std::int64_t multiple = 8;  // of patches a side, so that rows are one of 32
  return drafted(d, {.side = side, .coarsest = multiple * patch, .text = 512});
}

}  // namespace

std::vector<Family> z_image_families() {
  return {{"ZImageTransformer2DModel", "z_image", z_image}};
}

}  // namespace shardsim::models
