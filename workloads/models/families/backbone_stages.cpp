#include "workloads/models/families/backbone_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace shardsim::models {
namespace {

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

struct ResNetStages {
  StageSizes n;
  std::string activation;
  bool bottleneck = true, stride_first = false, first_halves = false;
};

Ref resnet_normed(Draft& d, const std::string& name, std::int64_t out, std::int64_t kernel,
                  std::int64_t stride, Ref x) {
  const Draft::In of(d, name);
  x = d.convolve(square("convolution", out, kernel, stride, /*bias=*/false), x);
  return d.batch_norm("normalization", x);
}

Ref resnet_layer(Draft& d, const ResNetStages& r, std::int64_t width, std::int64_t out,
                 std::int64_t stride, Ref x) {
  constexpr std::int64_t reduction = 4;
  Ref y = x;
  if (r.bottleneck) {
    y = resnet_normed(d, "layer.0", out / reduction, 1, r.stride_first ? stride : 1, y);
    y = resnet_normed(d, "layer.1", out / reduction, 3, r.stride_first ? 1 : stride,
                      d.activate(r.activation, y));
    y = resnet_normed(d, "layer.2", out, 1, 1, d.activate(r.activation, y));
  } else {
    y = resnet_normed(d, "layer.0", out, 3, stride, y);
    y = resnet_normed(d, "layer.1", out, 3, 1, d.activate(r.activation, y));
  }
  const bool shortcut = width != out || stride != 1;
  return d.activate(r.activation,
                    d.sum(y, shortcut ? resnet_normed(d, "shortcut", out, 1, stride, x) : x));
}

}  // namespace

StagePictures resnet_stages(const Config& c, Draft& d, const std::string& prefix) {
  ResNetStages r{
      .n = read_stages(c, {256, 512, 1024, 2048}, {3, 4, 6, 3}),
      .activation = c.activation("hidden_act", "relu"),
      .bottleneck = c.choice("layer_type", "bottleneck", {"bottleneck", "basic"}) == "bottleneck",
      .stride_first = c.flag("downsample_in_bottleneck", false),
      .first_halves = c.flag("downsample_in_first_stage", false)};
  constexpr std::int64_t stem_kernel = 7;
  std::int64_t width = c.size("embedding_size", 64);
  Ref x = resnet_normed(d, prefix + "embedder.embedder", width, stem_kernel, 2,
                        d.image(c.size("num_channels", 3)));
  x = d.pool({.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, d.activate(r.activation, x));
  StagePictures made{.widths = r.n.widths};
  for (std::size_t s = 0; s < r.n.widths.size(); ++s) {
    d.layer(prefix + "encoder.stages", static_cast<std::int64_t>(s), "stage");
    for (std::int64_t i = 0; i < r.n.depths[s]; ++i) {
      const Draft::In of(d, fmt::format("layers.{}", i));
      const std::int64_t stride = i == 0 && (s > 0 || r.first_halves) ? 2 : 1;
      x = resnet_layer(d, r, width, r.n.widths[s], stride, x);
      width = r.n.widths[s];
    }
    made.pictures.push_back(x);
  }
  d.outside("head");
  return made;
}

namespace {

struct ConvNextNames {
  std::string stages, own, norm, up, down, scale;
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

StagePictures convnext_pictures(const Config& c, Draft& d, const std::string& prefix,
                                const ConvNextNames& names, std::int64_t patch) {
  const StageSizes n = read_stages(c, {96, 192, 384, 768}, {3, 3, 9, 3});
  const std::string activation = c.activation("hidden_act", "gelu");
  const double last = c.rate("drop_path_rate", 0);
  const bool scaled = !names.stem_outside || c.number("layer_scale_init_value", 1e-6) > 0;
  Ref x = d.image(c.size("num_channels", 3));
  if (names.stem_outside) {
    x = d.convolve(patches(prefix + "embeddings.patch_embeddings", n.widths[0], patch), x);
    x = d.norm(row_norm(prefix + "embeddings.layernorm"), x);
  }
  StagePictures made{.widths = n.widths};
  made.coarsest = patch << (n.widths.size() - 1);
  std::int64_t block = 0;
  for (std::size_t s = 0; s < n.widths.size(); ++s) {
    d.layer(prefix + names.stages, static_cast<std::int64_t>(s), "stage");
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
    made.pictures.push_back(x);
  }
  d.outside("head");
  return made;
}

}  // namespace

StagePictures convnext_stages(const Config& c, Draft& d, const std::string& prefix) {
  return convnext_pictures(c, d, prefix,
                           {.stages = "encoder.stages",
                            .own = "dwconv",
                            .norm = "layernorm",
                            .up = "pwconv1",
                            .down = "pwconv2",
                            .scale = "layer_scale_parameter"},
                           c.size("patch_size", 4));
}

StagePictures dinov3_convnext_stages(const Config& c, Draft& d) {
  c.pass_over({"layer_scale_init_value"});
  constexpr std::int64_t patch = 4;
  return convnext_pictures(c, d, "",
                           {.stages = "model.stages",
                            .own = "depthwise_conv",
                            .norm = "layer_norm",
                            .up = "pointwise_conv1",
                            .down = "pointwise_conv2",
                            .scale = "gamma",
                            .stem_outside = false},
                           patch);
}

namespace {

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

}  // namespace

StagePictures swin_stages(const Config& c, Draft& d, const std::string& prefix,
                          bool always_shifts) {
  const SwinSizes sizes = read_swin_sizes(c);
  if (c.flag("use_absolute_embeddings", false)) {
    c.fail("use_absolute_embeddings", "true is not supported without a classifier");
  }
  c.pass_over({"num_layers", "num_hidden_layers", "hidden_size", "path_norm"});
  Ref x = swin_patches(c, d, sizes, prefix);
  StagePictures made{.coarsest = sizes.patch, .rows = true};
  std::int64_t block = 0;
  std::int64_t side = always_shifts
                          ? sizes.image / sizes.patch
                          : c.divided("image_size", sizes.image, "patch_size", sizes.patch);
  for (std::size_t s = 0; s < sizes.depths.size(); ++s) {
    d.layer(prefix + "encoder.layers", static_cast<std::int64_t>(s), "stage");
    SwinBlock n = sizes.block_of(c, s);
    n.window = sizes.window;
    if (!always_shifts && side < sizes.window) {
      c.fail("window_size", "is more than a stage has patches a side");
    }
    for (std::int64_t i = 0; i < sizes.depths[s]; ++i) {
      const Draft::In of(d, fmt::format("blocks.{}", i));
      n.drop_path = rising_rate(sizes.drop_path, block++, sizes.blocks);
      n.shifted = i % 2 == 1 && (always_shifts || side > sizes.window);
      x = swin_block(d, n, sizes.window, x);
    }
    made.pictures.push_back(x);
    made.widths.push_back(n.width);
    if (s + 1 == sizes.depths.size()) break;
    x = d.norm(row_norm("downsample.norm"), d.merge(x));
    x = d.linear({.name = "downsample.reduction", .out = 2 * n.width, .bias = false}, x);
    side = (side + 1) / 2;
  }
  d.outside("head");
  return made;
}

namespace {

// Numbers, from 0, of the stages that a file's out_features names: "stage1" is the first.
std::vector<std::size_t> wanted_stages(const Config& c, std::size_t stages) {
  std::vector<std::string> names = c.texts("out_features|_out_features");
  const std::vector<std::int64_t> numbers = c.integers("out_indices|_out_indices");
  c.pass_over({"stage_names"});
  for (const std::int64_t number : numbers) {
    if (c.given("out_features|_out_features")) break;
    names.push_back("stage" + std::to_string(number < 0
                                                 ? number + 1 + static_cast<std::int64_t>(stages)
                                                 : number));
  }
  if (names.empty()) return {stages - 1};
  std::vector<std::size_t> wanted;
  for (std::size_t s = 0; s < stages; ++s) {
    const std::string own = "stage" + std::to_string(s + 1);
    if (std::find(names.begin(), names.end(), own) != names.end()) wanted.push_back(s);
  }
  if (wanted.size() != names.size()) {
    c.fail("out_features", "only stages behind the first convolution are supported");
  }
  return wanted;
}

}  // namespace

StagePictures wanted_of(const Config& c, const StagePictures& all) {
  StagePictures made{.coarsest = all.coarsest, .rows = all.rows};
  c.pass_over({"architectures", "num_stages", "image_size"});
  for (const std::size_t s : wanted_stages(c, all.pictures.size())) {
    made.pictures.push_back(all.pictures[s]);
    made.widths.push_back(all.widths[s]);
  }
  return made;
}

StagePictures backbone_pictures(const Config& c, Draft& d, const std::string& prefix) {
  const std::string type = c.choice("model_type", "resnet", {"resnet", "convnext", "swin"});
  c.pass_over({"architectures", "num_stages", "image_size"});
  const bool is_swin = type == "swin";
  const StagePictures all = is_swin            ? swin_stages(c, d, prefix + "swin.", true)
                            : type == "resnet" ? resnet_stages(c, d, prefix)
                                               : convnext_stages(c, d, prefix);
  StagePictures made{.coarsest = all.coarsest};
  if (is_swin) {  // which runs, and nobody reads it
    static_cast<void>(d.norm(row_norm(prefix + "swin.layernorm"), all.pictures.back()));
  }
  for (const std::size_t s : wanted_stages(c, all.pictures.size())) {
    Ref x = all.pictures[s];
    const std::string norm = fmt::format("{}hidden_states_norms.stage{}", prefix, s + 1);
    if (type != "resnet") x = d.norm(row_norm(norm), x);
    made.pictures.push_back(is_swin ? d.copied_picture(x) : x);
    made.widths.push_back(all.widths[s]);
  }
  return made;
}

}  // namespace shardsim::models
