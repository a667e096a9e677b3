// U-Nets over pixels without a text (DDPM, arXiv:2006.11239: diffusers' UNet2DModel), and the half
// of a latent diffusion's U-Net that a picture steers it by (ControlNet, arXiv:2302.05543).
//
// Source: diffusers 0.42.1, unet_2d.py, controlnet.py, unet_2d_blocks.py, attention_processor.py.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "workloads/models/families/diffusion_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

// A picture and its channels.
struct Wide {
  Ref x = 0;
  std::int64_t width = 0;
};

struct SkipNet {
  Draft& d;
  std::int64_t groups = 32;
  std::string activation = "silu";
  double dropout = 0;
  Ref time = 0;
  Ref text = 0;

  // Group norm, activation and a convolution, twice; the time between them.
  [[nodiscard]] Wide residual(const std::string& name, std::int64_t out, const Wide& in) const {
    const Draft::In of(d, name);
    const auto active = [&](Ref x) { return d.activate(activation, x, "nonlinearity"); };
    Ref x = active(d.group_norm("norm1", groups, in.x));
    x = d.convolve(square("conv1", out, 3), x);
    x = d.sum(x, d.linear({.name = "time_emb_proj", .out = out}, active(time)));
    x = d.drop(dropout, active(d.group_norm("norm2", groups, x)));
    x = d.convolve(square("conv2", out, 3), x);
    if (in.width == out) return {d.sum(in.x, x), out};
    return {d.sum(d.convolve(square("conv_shortcut", out, 1), in.x), x), out};
  }

  // Among places, heads of so many channels.
  [[nodiscard]] Wide attend(const std::string& name, std::int64_t norm_groups,
                            std::int64_t head_dim, const Wide& in) const {
    const Draft::In of(d, name);
    const Ref rows = d.rows(d.group_norm("group_norm", norm_groups, in.x));
    const std::int64_t heads = in.width / head_dim;
    const Ref out = attend_rows(d, {.name = "", .heads = heads, .head_dim = head_dim}, rows, rows);
    return {d.sum(d.picture(out), in.x), in.width};
  }

  // Among places, to the text, and an MLP, as often as `blocks` says.
  [[nodiscard]] Wide transform(const std::string& name, std::int64_t blocks, std::int64_t heads,
                               bool linear, const Wide& in) const {
    const Draft::In of(d, name);
    const std::int64_t width = in.width;
    const Ref normed = d.group_norm("norm", groups, in.x);
    Ref rows = linear ? d.linear({.name = "proj_in", .out = width}, d.rows(normed))
                      : d.rows(d.convolve(square("proj_in", width, 1), normed));
    const RowAttention among{
        .name = "attn1", .heads = heads, .head_dim = width / heads, .bias = false};
    RowAttention to_text = among;
    to_text.name = "attn2";
    for (std::int64_t i = 0; i < blocks; ++i) {
      const Draft::In block(d, fmt::format("transformer_blocks.{}", i));
      const Ref first = d.branch(d.norm(row_norm("norm1"), rows));
      rows = d.stream(d.sum(rows, attend_rows(d, among, first, first)));
      const Ref second = d.branch(d.norm(row_norm("norm2"), rows));
      rows = d.stream(d.sum(rows, attend_rows(d, to_text, second, text)));
      const Ref third = d.branch(d.norm(row_norm("norm3"), rows));
      const FeedForwardRows mlp{
          .hidden = width, .width = 4 * width, .activation = "gelu", .gate = true};
      rows = d.stream(d.sum(rows, feed_forward(d, mlp, third)));
    }
    const Ref back = linear ? d.copied_picture(d.linear({.name = "proj_out", .out = width}, rows))
                            : d.convolve(square("proj_out", width, 1), d.copied_picture(rows));
    return {d.sum(back, in.x), width};
  }

  [[nodiscard]] Wide halve(const Wide& in, bool one_side) const {
    Convolve half = square("downsamplers.0.conv", in.width, 3, 2);
    if (one_side) {
      half.padding = {0, 0};
      half.padded = {1, 1};
    }
    return {d.convolve(half, in.x), in.width};
  }
};

void refuse_unlike(const Config& c, std::string_view key, std::string_view only) {
  if (c.given(key) && c.text(key, only) != only) {
    c.fail(key, fmt::format("only \"{}\" is supported", only));
  }
}

// Of each level whether its blocks attend.
std::vector<bool> attending(const Config& c, const char* key, std::vector<std::string> usual,
                            const std::string& plain, const std::string& with, std::size_t levels) {
  if (c.given(key)) usual = c.texts(key);
  if (usual.size() != levels) c.fail(key, "has not one entry for each of block_out_channels");
  std::vector<bool> attends;
  for (const std::string& type : usual) {
    if (type != plain && type != with) {
      c.fail(key,
             fmt::format("\"{}\" is not supported; supported are {} and {}", type, with, plain));
    }
    attends.push_back(type == with);
  }
  return attends;
}

// A list that says nothing else: what the classes of diffusers have as None is not there.
bool is_null(const Config& c, const char* key) {
  return c.json().json().contains(key) && !c.given(key);
}

struct PixelUNet {
  std::vector<std::int64_t> widths{};
  std::vector<bool> down{}, up{};
  std::int64_t blocks = 2, head_dim = 8;
  bool one_side = false;

  [[nodiscard]] std::int64_t head(std::int64_t width) const {
    return head_dim > 0 ? head_dim : width;
  }
};

PixelUNet read_pixel_unet(const Config& c) {
  PixelUNet n;
  n.widths = c.sizes("block_out_channels", {224, 448, 672, 896});
  const std::size_t levels = n.widths.size();
  n.down = attending(c, "down_block_types",
                     {"DownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D"},
                     "DownBlock2D", "AttnDownBlock2D", levels);
  n.up = attending(c, "up_block_types",
                   {"AttnUpBlock2D", "AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D"}, "UpBlock2D",
                   "AttnUpBlock2D", levels);
  n.blocks = c.size("layers_per_block", 2);
  n.head_dim = c.optional_size("attention_head_dim", 8).value_or(0);
  n.one_side = c.count("downsample_padding", 1) == 0;
  if (c.count("downsample_padding", 1) > 1) {
    c.fail("downsample_padding", "only 0 and 1 are supported");
  }
  for (const std::int64_t width : n.widths) {
    static_cast<void>(
        c.divided("block_out_channels", width, "norm_num_groups", c.size("norm_num_groups", 32)));
    static_cast<void>(c.divided("block_out_channels", width, "attention_head_dim", n.head(width)));
  }
  refuse_unlike(c, "time_embedding_type", "positional");
  refuse_unlike(c, "downsample_type", "conv");
  refuse_unlike(c, "upsample_type", "conv");
  refuse_unlike(c, "resnet_time_scale_shift", "default");
  refuse_unlike(c, "mid_block_type", "UNetMidBlock2D");
  if (is_null(c, "mid_block_type")) {
    c.json().fail("mid_block_type: a network without a middle is not supported");
  }
  c.pass_over({"freq_shift", "flip_sin_to_cos", "num_train_timesteps", "mid_block_scale_factor"});
  return n;
}

Ref pixel_time(const Config& c, Draft& d, std::int64_t numbers) {
  const std::int64_t width =
      c.optional_size("time_embedding_dim", std::nullopt).value_or(4 * numbers);
  Ref time = time_embedding(d, "time_embedding", numbers, width);
  const auto classes = c.optional_size("num_class_embeds", std::nullopt);
  if (c.given("class_embed_type")) {
    refuse_unlike(c, "class_embed_type", "timestep");
    time = d.sum(time, time_embedding(d, "class_embedding", numbers, width));
  } else if (classes) {
    time = d.sum(time, d.looked_up("class_embedding", *classes, width));
  }
  return time;
}

ModelSpec pixel_unet(const Config& c) {
  Draft d;
  const PixelUNet n = read_pixel_unet(c);
  SkipNet net{.d = d,
              .groups = c.size("norm_num_groups", 32),
              .activation = c.activation("act_fn", "silu"),
              .dropout = c.rate("dropout", 0)};
  net.time = pixel_time(c, d, n.widths.front());
  Ref image = d.image(c.size("in_channels", 3));
  if (c.flag("center_input_sample", false)) image = d.scaled(image);
  Wide x{d.convolve(square("conv_in", n.widths.front(), 3), image), n.widths.front()};
  std::vector<Wide> skips{x};
  const std::size_t levels = n.widths.size();
  for (std::size_t l = 0; l < levels; ++l) {
    d.layer("down_blocks", static_cast<std::int64_t>(l), "down");
    for (std::int64_t i = 0; i < n.blocks; ++i) {
      x = net.residual(fmt::format("resnets.{}", i), n.widths[l], x);
      if (n.down[l]) {
        x = net.attend(fmt::format("attentions.{}", i), net.groups, n.head(x.width), x);
      }
      skips.push_back(x);
    }
    if (l + 1 < levels) skips.push_back(x = net.halve(x, n.one_side));
  }
  d.outside("middle");
  x = net.residual("mid_block.resnets.0", x.width, x);
  if (c.flag("add_attention", true)) {
    const std::int64_t groups =
        c.optional_size("attn_norm_num_groups", std::nullopt).value_or(net.groups);
    x = net.attend("mid_block.attentions.0", groups, n.head(x.width), x);
  }
  x = net.residual("mid_block.resnets.1", x.width, x);
  for (std::size_t l = 0; l < levels; ++l) {
    d.layer("up_blocks", static_cast<std::int64_t>(l), "up");
    const std::int64_t width = n.widths[levels - 1 - l];
    for (std::int64_t i = 0; i <= n.blocks; ++i) {
      const Wide both{d.beside({x.x, skips.back().x}), x.width + skips.back().width};
      skips.pop_back();
      x = net.residual(fmt::format("resnets.{}", i), width, both);
      if (n.up[l]) x = net.attend(fmt::format("attentions.{}", i), net.groups, n.head(width), x);
    }
    if (l + 1 == levels) break;
    const Convolve twice = square("upsamplers.0.conv", width, 3);
    x.x = d.convolve(twice, d.resize({.times = 2}, x.x));
  }
  d.outside("head");
  const Ref normed = d.activate("silu", d.group_norm("conv_norm_out", net.groups, x.x), "conv_act");
  d.sum_loss(d.convolve(square("conv_out", c.size("out_channels", 3), 3), normed));
  d.note(fmt::format("{} levels of {} residual blocks, {} on the way back", levels, n.blocks,
                     n.blocks + 1));
  ModelSpec spec;
  spec.network =
      d.finish({.side = c.size("sample_size", 32), .coarsest = std::int64_t{1} << (levels - 1)});
  spec.head.kind = HeadKind::none;
  return spec;
}

// The picture that steers, made as small as the latents.
Ref steering(const Config& c, Draft& d, std::int64_t width) {
  const Draft::In of(d, "controlnet_cond_embedding");
  const auto widths = c.sizes("conditioning_embedding_out_channels", {16, 32, 96, 256});
  const auto active = [&](Ref x) { return d.activate("silu", x, "act"); };
  Ref x = d.enter(PictureInput{.name = "controlnet_cond",
                               .channels = c.size("conditioning_channels", 3),
                               .times = std::int64_t{1} << (widths.size() - 1)});
  x = active(d.convolve(square("conv_in", widths.front(), 3), x));
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    x = active(d.convolve(square(fmt::format("blocks.{}", 2 * i), widths[i], 3), x));
    x = active(d.convolve(square(fmt::format("blocks.{}", 2 * i + 1), widths[i + 1], 3, 2), x));
  }
  return d.convolve(square("conv_out", width, 3), x);
}

Ref steered_time(const Config& c, Draft& d, const std::string& activation, std::int64_t numbers) {
  const std::int64_t width = 4 * numbers;
  const auto enter = [&](const std::string& name, std::int64_t wide) {
    const Ref in = d.enter(RowsInput{.name = name + ".numbers", .width = wide, .constant = true});
    return two_products(d, name, width, in, true, activation);
  };
  const Ref time = enter("time_embedding", numbers);
  if (!c.given("addition_embed_type")) return time;
  refuse_unlike(c, "addition_embed_type", "text_time");
  static_cast<void>(c.size("addition_time_embed_dim", 1));  // a part of it
  const std::string added = "add_embedding";
  const Ref in = d.enter(RowsInput{.name = added + ".numbers",
                                   .width = c.size("projection_class_embeddings_input_dim"),
                                   .constant = true});
  return d.sum(time, two_products(d, added, width, in));
}

void refuse_other_steering(const Config& c) {
  for (const char* key :
       {"encoder_hid_dim", "encoder_hid_dim_type", "class_embed_type", "num_class_embeds"}) {
    if (c.given(key)) c.fail(key, "is not supported");
  }
  for (const char* key : {"upcast_attention", "global_pool_conditions"}) {
    if (c.flag(key, false)) c.fail(key, "true is not supported");
  }
  if (c.given("only_cross_attention") && c.flag("only_cross_attention", false)) {
    c.fail("only_cross_attention", "true is not supported");
  }
  refuse_unlike(c, "resnet_time_scale_shift", "default");
  refuse_unlike(c, "controlnet_conditioning_channel_order", "rgb");
  refuse_unlike(c, "mid_block_type", "UNetMidBlock2DCrossAttn");
  if (c.size("downsample_padding", 1) != 1) c.fail("downsample_padding", "only 1 is supported");
  c.pass_over(
      {"flip_sin_to_cos", "freq_shift", "addition_embed_type_num_heads", "mid_block_scale_factor"});
}

std::vector<std::int64_t> for_levels(const Config& c, const char* key, std::int64_t usual,
                                     std::size_t levels) {
  const auto value = c.json().find(key);
  if (!value || !value->json().is_array()) {
    return std::vector<std::int64_t>(levels, c.size(key, usual));
  }
  auto values = c.sizes(key, {});
  if (values.size() != levels) c.fail(key, "has not one entry for each of block_out_channels");
  return values;
}

ModelSpec beside_latents(Draft& d, std::size_t levels) {
  constexpr std::int64_t usual = 64, clip_tokens = 77;
  ModelSpec spec;
  spec.network = d.finish({.side = usual,
                           .coarsest = std::int64_t{1} << (levels - 1),
                           .sequences = true,
                           .text = clip_tokens});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec controlnet(const Config& c) {
  Draft d;
  refuse_other_steering(c);
  const auto widths = c.sizes("block_out_channels", {320, 640, 1280, 1280});
  const std::size_t levels = widths.size();
  const auto attends = attending(
      c, "down_block_types",
      {"CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"},
      "DownBlock2D", "CrossAttnDownBlock2D", levels);
  const auto depths = for_levels(c, "transformer_layers_per_block", 1, levels);
  const auto heads = for_levels(
      c, c.given("num_attention_heads") ? "num_attention_heads" : "attention_head_dim", 8, levels);
  const std::int64_t blocks = c.size("layers_per_block", 2);
  const bool linear = c.flag("use_linear_projection", false);
  SkipNet net{.d = d,
              .groups = c.size("norm_num_groups", 32),
              .activation = c.activation("act_fn", "silu")};
  for (std::size_t l = 0; l < levels; ++l) {
    static_cast<void>(c.divided("block_out_channels", widths[l], "norm_num_groups", net.groups));
    static_cast<void>(c.divided("block_out_channels", widths[l], "attention_head_dim", heads[l]));
  }
  net.time = steered_time(c, d, net.activation, widths.front());
  net.text = d.enter(RowsInput{.name = "encoder_hidden_states",
                               .width = c.size("cross_attention_dim", 1280),
                               .is_text_long = true});
  const Ref in =
      d.convolve(square("conv_in", widths.front(), 3), d.image(c.size("in_channels", 4)));
  Wide x{d.sum(in, steering(c, d, widths.front())), widths.front()};
  std::vector<Wide> left{x};
  for (std::size_t l = 0; l < levels; ++l) {
    d.layer("down_blocks", static_cast<std::int64_t>(l), "down");
    for (std::int64_t i = 0; i < blocks; ++i) {
      x = net.residual(fmt::format("resnets.{}", i), widths[l], x);
      if (attends[l]) {
        x = net.transform(fmt::format("attentions.{}", i), depths[l], heads[l], linear, x);
      }
      left.push_back(x);
    }
    if (l + 1 < levels) left.push_back(x = net.halve(x, /*one_side=*/false));
  }
  d.outside("middle");
  x = net.residual("mid_block.resnets.0", x.width, x);
  x = net.transform("mid_block.attentions.0", depths.back(), heads.back(), linear, x);
  x = net.residual("mid_block.resnets.1", x.width, x);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::string name = fmt::format("controlnet_down_blocks.{}", i);
    d.sum_loss(d.convolve(square(name, left[i].width, 1), left[i].x));
  }
  d.sum_loss(d.convolve(square("controlnet_mid_block", x.width, 1), x.x));
  d.note(
      fmt::format("{} levels of {} residual blocks; what each leaves goes through a convolution "
                  "of its own",
                  levels, blocks));
  return beside_latents(d, levels);
}

}  // namespace

std::vector<Family> skip_diffusion_families() {
  return {{"UNet2DModel", "unet_2d", pixel_unet}, {"ControlNetModel", "controlnet", controlnet}};
}

}  // namespace shardsim::models
