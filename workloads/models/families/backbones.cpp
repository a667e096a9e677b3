// Networks over images without what classifies behind them: ResNet, ConvNeXt, DINOv3's ConvNeXt,
// Swin. What leaves them are the last stage's places; their mean, normed or not, beside them.
//
// Source: transformers 5.23.0, modeling_resnet.py, modeling_convnext.py,
// modeling_dinov3_convnext.py, modeling_swin.py.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

ModelSpec backbone_spec(const Config& c, Draft& d, std::int64_t coarsest) {
  c.pass_over({"num_stages", "out_features", "out_indices", "stage_names", "_out_features",
               "_out_indices", "encoder_stride"});
  ModelSpec spec;
  spec.network = d.finish({.side = c.size("image_size", 224), .coarsest = coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

struct StageSizes {
  std::vector<std::int64_t> widths, depths;
  std::int64_t blocks = 0;
};

StageSizes read_stages(const Config& c, std::vector<std::int64_t> widths,
                       std::vector<std::int64_t> depths) {
  StageSizes n{c.sizes("hidden_sizes", std::move(widths)), c.sizes("depths", std::move(depths))};
  if (n.widths.size() != n.depths.size()) {
    c.fail("depths", "has not one entry for each hidden size");
  }
  for (const std::int64_t depth : n.depths) n.blocks += depth;
  return n;
}

ModelSpec resnet_model(const Config& c) {
  Draft d;
  const StageSizes n = read_stages(c, {256, 512, 1024, 2048}, {3, 4, 6, 3});
  const std::string activation = c.activation("hidden_act", "relu");
  const bool bottleneck =
      c.choice("layer_type", "bottleneck", {"bottleneck", "basic"}) == "bottleneck";
  const bool stride_first = c.flag("downsample_in_bottleneck", false);
  const bool first_halves = c.flag("downsample_in_first_stage", false);
  const auto normed = [&](const std::string& name, std::int64_t out, std::int64_t kernel,
                          std::int64_t stride, Ref x) {
    const Draft::In of(d, name);
    x = d.convolve(square("convolution", out, kernel, stride, /*bias=*/false), x);
    return d.batch_norm("normalization", x);
  };
  constexpr std::int64_t stem_kernel = 7, reduction = 4;
  std::int64_t width = c.size("embedding_size", 64);
  Ref x = normed("embedder.embedder", width, stem_kernel, 2, d.image(c.size("num_channels", 3)));
  x = d.pool({.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, d.activate(activation, x));
  for (std::size_t s = 0; s < n.widths.size(); ++s) {
    d.layer("encoder.stages", static_cast<std::int64_t>(s), "stage");
    const std::int64_t out = n.widths[s];
    for (std::int64_t i = 0; i < n.depths[s]; ++i) {
      const Draft::In of(d, fmt::format("layers.{}", i));
      const std::int64_t stride = i == 0 && (s > 0 || first_halves) ? 2 : 1;
      Ref y = x;
      if (bottleneck) {
        y = normed("layer.0", out / reduction, 1, stride_first ? stride : 1, y);
        y = normed("layer.1", out / reduction, 3, stride_first ? 1 : stride,
                   d.activate(activation, y));
        y = normed("layer.2", out, 1, 1, d.activate(activation, y));
      } else {
        y = normed("layer.0", out, 3, stride, y);
        y = normed("layer.1", out, 3, 1, d.activate(activation, y));
      }
      const bool shortcut = width != out || stride != 1;
      x = d.activate(activation, d.sum(y, shortcut ? normed("shortcut", out, 1, stride, x) : x));
      width = out;
    }
  }
  d.outside("head");
  d.sum_loss(x);
  return backbone_spec(c, d, 1);
}

struct ConvNextNames {
  std::string stages, own, norm, up, down, scale, last;
  bool stem_outside = true;
};

// A convolution of each channel, a norm and an MLP of each place.
Ref convnext_layer(Draft& d, const ConvNextNames& names, const std::string& activation,
                   std::int64_t width, bool scaled, double rate, Ref x) {
  Convolve own = square(names.own, width, 7);
  own.each = true;
  Ref out = d.norm(row_norm(names.norm), d.rows(d.convolve(own, x)));
  out = d.mlp(names.up, names.down, 4 * width, width, activation, out);
  if (scaled) out = d.factor(names.scale, out);
  return d.sum(x, d.drop_path(rate, d.picture(out)));
}

Ref convnext_picture(const Config& c, Draft& d, const ConvNextNames& names, std::int64_t patch) {
  const StageSizes n = read_stages(c, {96, 192, 384, 768}, {3, 3, 9, 3});
  const std::string activation = c.activation("hidden_act", "gelu");
  const double last = c.rate("drop_path_rate", 0);
  const bool scaled = !names.stem_outside || c.number("layer_scale_init_value", 1e-6) > 0;
  Ref x = d.image(c.size("num_channels", 3));
  if (names.stem_outside) {
    x = d.convolve(patches("embeddings.patch_embeddings", n.widths[0], patch), x);
    x = d.norm(row_norm("embeddings.layernorm"), x);
  }
  std::int64_t block = 0;
  for (std::size_t s = 0; s < n.widths.size(); ++s) {
    d.layer(names.stages, static_cast<std::int64_t>(s), "stage");
    const std::string at = names.stem_outside ? "downsampling_layer." : "downsample_layers.";
    if (s > 0) {
      x = d.norm(row_norm(at + "0"), x);
      x = d.convolve(patches(at + "1", n.widths[s], 2), x);
    } else if (!names.stem_outside) {
      x = d.norm(row_norm(at + "1"), d.convolve(patches(at + "0", n.widths[s], patch), x));
    }
    for (std::int64_t i = 0; i < n.depths[s]; ++i) {
      const Draft::In of(d, fmt::format("layers.{}", i));
      x = convnext_layer(d, names, activation, n.widths[s], scaled,
                         rising_rate(last, block++, n.blocks), x);
    }
  }
  d.outside("head");
  return x;
}

std::int64_t coarsest_of(const Config& c, std::int64_t patch) {
  return patch << (c.sizes("hidden_sizes", {96, 192, 384, 768}).size() - 1);
}

ModelSpec convnext_model(const Config& c) {
  Draft d;
  const std::int64_t patch = c.size("patch_size", 4);
  const Ref x = convnext_picture(c, d,
                                 {.stages = "encoder.stages",
                                  .own = "dwconv",
                                  .norm = "layernorm",
                                  .up = "pwconv1",
                                  .down = "pwconv2",
                                  .scale = "layer_scale_parameter",
                                  .last = "layernorm"},
                                 patch);
  static_cast<void>(d.norm(row_norm("layernorm"), d.mean(x)));
  d.sum_loss(x);
  return backbone_spec(c, d, coarsest_of(c, patch));
}

ModelSpec dinov3_convnext_model(const Config& c) {
  Draft d;
  c.pass_over({"layer_scale_init_value"});
  constexpr std::int64_t patch = 4;
  const Ref x = convnext_picture(c, d,
                                 {.stages = "model.stages",
                                  .own = "depthwise_conv",
                                  .norm = "layer_norm",
                                  .up = "pointwise_conv1",
                                  .down = "pointwise_conv2",
                                  .scale = "gamma",
                                  .last = "layer_norm",
                                  .stem_outside = false},
                                 patch);
  d.sum_loss(d.norm(row_norm("layer_norm"),
                    d.behind({d.rows(x), d.rows(d.pool({.largest = false, .to = 1}, x))})));
  return backbone_spec(c, d, coarsest_of(c, patch));
}

Ref swin_block(Draft& d, const SwinBlock& n, std::int64_t table, Ref x) {
  const std::int64_t span = 2 * table - 1;
  const Ref windows = d.windows(n.window, d.norm(row_norm("layernorm_before"), x));
  const Ref bias =
      d.distance_bias({.name = "attention.relative_position_bias.relative_position_bias_table",
                       .distances = span * span,
                       .heads = n.heads,
                       .places = n.window * n.window},
                      n.shifted ? std::optional<Ref>(windows) : std::nullopt);
  Ref out = d.attend({.name = "attention",
                      .heads = n.heads,
                      .q_bias = n.qkv_bias,
                      .k_bias = n.qkv_bias,
                      .v_bias = n.qkv_bias,
                      .dropout = n.attention_dropout},
                     windows, windows, windows, bias);
  out = d.from_windows(n.window, d.drop(n.dropout, out), x);
  x = d.sum(x, d.drop_path(n.drop_path, out));
  out = d.mlp("mlp.fc1", "mlp.fc2", n.ffn, n.width, n.activation,
              d.norm(row_norm("layernorm_after"), x));
  return d.sum(x, d.drop(n.dropout, out));
}

ModelSpec swin_model(const Config& c) {
  Draft d;
  const SwinSizes sizes = read_swin_sizes(c);
  if (c.flag("use_absolute_embeddings", false)) {
    c.fail("use_absolute_embeddings", "true is not supported without a classifier");
  }
  c.pass_over({"num_layers", "num_hidden_layers", "hidden_size", "path_norm"});
  Ref x = swin_patches(c, d, sizes, "");
  std::int64_t block = 0;
  std::int64_t side = c.divided("image_size", sizes.image, "patch_size", sizes.patch);
  for (std::size_t s = 0; s < sizes.depths.size(); ++s) {
    d.layer("encoder.layers", static_cast<std::int64_t>(s), "stage");
    SwinBlock n = sizes.block_of(c, s);
    n.window = sizes.window;
    if (side < sizes.window) c.fail("window_size", "is more than a stage has patches a side");
    for (std::int64_t i = 0; i < sizes.depths[s]; ++i) {
      const Draft::In of(d, fmt::format("blocks.{}", i));
      n.drop_path = rising_rate(sizes.drop_path, block++, sizes.blocks);
      n.shifted = i % 2 == 1 && side > sizes.window;
      x = swin_block(d, n, sizes.window, x);
    }
    if (s + 1 == sizes.depths.size()) break;
    x = d.norm(row_norm("downsample.norm"), d.merge(x));
    x = d.linear({.name = "downsample.reduction", .out = 2 * n.width, .bias = false}, x);
    side = (side + 1) / 2;
  }
  d.outside("head");
  const Ref rows = d.norm(row_norm("layernorm"), x);
  d.sum_loss(rows);
  ModelSpec spec = backbone_spec(c, d, sizes.patch);
  std::get<Blueprint>(*spec.network).takes_one_side = true;
  return spec;
}

}  // namespace

std::vector<Family> backbone_families() {
  return {{"ResNetModel", "resnet", resnet_model},
          {"ConvNextModel", "convnext", convnext_model},
          {"DINOv3ConvNextModel", "dinov3_convnext", dinov3_convnext_model},
          {"SwinModel", "swin", swin_model}};
}

}  // namespace shardsim::models
