// Networks of convolutions written down step by step: EfficientNet (arXiv:1905.11946), RegNet
// (arXiv:2003.13678), MobileNet 1 and 2 (arXiv:1704.04861, arXiv:1801.04381).
#include <algorithm>
#include <cmath>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

// Each channel times what a small network makes of all channels' means.
Ref squeezed(Draft& d, const std::array<std::string, 2>& names, std::int64_t width,
             std::int64_t narrow, const std::string& activation, Ref x) {
  Ref scale = d.pool({.largest = false, .to = 1}, x);
  scale = d.activate(activation, d.convolve(patches(names[0], narrow, 1), scale), "squeeze_act");
  scale = d.activate("sigmoid", d.convolve(patches(names[1], width, 1), scale), "excite_act");
  return d.product(x, scale);
}

ModelSpec picture_spec(Draft& d, std::int64_t side, std::int64_t coarsest) {
  ModelSpec spec;
  spec.network = d.finish({.side = side, .coarsest = coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

struct EfficientBlock {
  std::int64_t in = 0, out = 0, kernel = 3, stride = 1, expansion = 1;
  bool first = false, fits = true;  // of a stage; zeros behind alone
  double squeeze = 0.25, drop = 0;
  std::string activation;
};

Ref efficient_block(Draft& d, const EfficientBlock& n, Ref x) {
  const std::int64_t wide = n.in * n.expansion;
  Ref y = x;
  if (n.expansion != 1) {
    const Draft::In of(d, "expansion");
    y = d.batch_norm("expand_bn", d.convolve(square("expand_conv", wide, 1, 1, false), y));
    y = d.activate(n.activation, y, "expand_act");
  }
  {
    const Draft::In of(d, "depthwise_conv");
    Convolve each = square("depthwise_conv", wide, n.kernel, n.stride, /*bias=*/false);
    each.each = true;
    if (n.stride == 2) {
      const std::int64_t zeros = 2 * (n.kernel / 2) - (n.fits ? 1 : 0);
      each.padding = {0, 0};
      each.padded = {zeros, zeros};
    }
    y = d.activate(n.activation, d.batch_norm("depthwise_norm", d.convolve(each, y)),
                   "depthwise_act");
  }
  {
    const Draft::In of(d, "squeeze_excite");
    const auto narrow = static_cast<std::int64_t>(static_cast<double>(n.in) * n.squeeze);
    y = squeezed(d, {"reduce", "expand"}, wide, std::max<std::int64_t>(narrow, 1), n.activation, y);
  }
  const Draft::In of(d, "projection");
  y = d.batch_norm("project_bn", d.convolve(square("project_conv", n.out, 1, 1, false), y));
  if (n.stride != 1 || n.first) return y;
  return d.sum(d.drop(n.drop, y), x);
}

Ref efficientnet_picture(const Config& c, Draft& d, const std::string& prefix) {
  const double width = c.ratio("width_coefficient", 2);
  const double depth = c.ratio("depth_coefficient", 3.1);
  const std::int64_t divisor = c.size("depth_divisor", 8);
  const auto filters = [&](std::int64_t n) {
    return rounded_width(static_cast<double>(n) * width, divisor, divisor);
  };
  const auto ins = c.sizes("in_channels", {32, 16, 24, 40, 80, 112, 192});
  const auto list = [&](const char* key, std::vector<std::int64_t> otherwise) {
    auto values = c.sizes(key, std::move(otherwise));
    if (values.size() != ins.size()) c.fail(key, "has not one entry for each of in_channels");
    return values;
  };
  const auto outs = list("out_channels", {16, 24, 40, 80, 112, 192, 320});
  const auto kernels = list("kernel_sizes", {3, 3, 5, 3, 5, 5, 3});
  const auto strides = list("strides", {1, 2, 2, 2, 1, 2, 1});
  const auto repeats = list("num_block_repeats", {1, 2, 2, 3, 3, 4, 1});
  const auto expansions = list("expand_ratios", {1, 6, 6, 6, 6, 6, 6});
  const auto wide = c.integers("depthwise_padding");
  const auto repeated = [&](std::size_t i) {
    return static_cast<std::int64_t>(std::ceil(depth * static_cast<double>(repeats[i])));
  };
  std::int64_t blocks = 0;
  for (std::size_t i = 0; i < ins.size(); ++i) blocks += repeated(i);
  EfficientBlock n{.squeeze = c.ratio("squeeze_expansion_ratio", 0.25),
                   .activation = c.activation("hidden_act", "silu")};
  const double last_drop = c.rate("drop_connect_rate", 0.2);
  constexpr std::int64_t stem = 32;
  constexpr std::int64_t top = 1280;
  Convolve first = square(prefix + "embeddings.convolution", filters(stem), 3, 2, false);
  first.padding = {0, 0};
  first.padded = {1, 1};
  Ref x = d.convolve(first, d.image(c.size("num_channels", 3)));
  x = d.activate(n.activation, d.batch_norm(prefix + "embeddings.batchnorm", x));
  std::int64_t number = 0;
  for (std::size_t s = 0; s < ins.size(); ++s) {
    for (std::int64_t i = 0; i < repeated(s); ++i) {
      d.layer(prefix + "encoder.blocks", number, "block");
      n.in = filters(i == 0 ? ins[s] : outs[s]);
      n.out = filters(outs[s]);
      n.kernel = kernels[s];
      n.stride = i == 0 ? strides[s] : 1;
      n.expansion = expansions[s];
      n.first = i == 0;
      n.fits = std::find(wide.begin(), wide.end(), number) == wide.end();
      n.drop = last_drop * static_cast<double>(number++) / static_cast<double>(blocks);
      x = efficient_block(d, n, x);
    }
  }
  d.outside("head");
  x = d.convolve(square(prefix + "encoder.top_conv", filters(top), 1, 1, false), x);
  x = d.activate(n.activation, d.batch_norm(prefix + "encoder.top_bn", x));
  if (c.size("hidden_dim", 2560) != filters(top)) {
    c.fail("hidden_dim", "is not 1280 times width_coefficient, rounded");
  }
  return x;
}

ModelSpec efficientnet_spec(const Config& c, Draft& d) {
  constexpr std::int64_t coarsest = 1;
  c.pass_over({"batch_norm_eps", "batch_norm_momentum", "num_hidden_layers", "dropout_rate",
               "pooling_type"});
  return picture_spec(d, c.size("image_size", 600), coarsest);
}

Ref efficientnet_pooled(const Config& c, Draft& d, Ref x) {
  const bool largest = c.choice("pooling_type", "mean", {"mean", "max"}) == "max";
  return d.mean(d.pool({.largest = largest, .whole = true}, x));
}

ModelSpec efficientnet_model(const Config& c) {
  Draft d;
  const Ref x = efficientnet_picture(c, d, "");
  static_cast<void>(efficientnet_pooled(c, d, x));
  d.sum_loss(x);
  return efficientnet_spec(c, d);
}

ModelSpec efficientnet_classifier(const Config& c) {
  Draft d;
  const Ref pooled = efficientnet_pooled(c, d, efficientnet_picture(c, d, "efficientnet."));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)},
                     d.drop(c.rate("dropout_rate", 0.5), pooled)));
  return efficientnet_spec(c, d);
}

struct RegNetLayer {
  std::int64_t in = 0, out = 0, stride = 1, groups = 1;
  bool squeezes = true;
  std::string activation;
};

Ref regnet_convolution(Draft& d, const std::string& name, std::int64_t out, std::int64_t kernel,
                       std::int64_t stride, std::int64_t groups, const std::string& activation,
                       Ref x) {
  Convolve convolution = square(name + ".convolution", out, kernel, stride, /*bias=*/false);
  convolution.groups = groups;
  x = d.batch_norm(name + ".normalization", d.convolve(convolution, x));
  return activation.empty() ? x : d.activate(activation, x, name + ".activation");
}

Ref regnet_layer(Draft& d, const RegNetLayer& n, Ref x) {
  Ref y = regnet_convolution(d, "layer.0", n.out, 1, 1, 1, n.activation, x);
  y = regnet_convolution(d, "layer.1", n.out, 3, n.stride, n.groups, n.activation, y);
  if (n.squeezes) {
    constexpr double reduction = 4;
    const auto narrow = std::llrint(static_cast<double>(n.in) / reduction);
    y = squeezed(d, {"layer.2.attention.0", "layer.2.attention.2"}, n.out, narrow, "relu", y);
  }
  y = regnet_convolution(d, n.squeezes ? "layer.3" : "layer.2", n.out, 1, 1, 1, "", y);
  if (n.in != n.out || n.stride != 1) {
    x = regnet_convolution(d, "shortcut", n.out, 1, n.stride, 1, "", x);
  }
  return d.activate(n.activation, d.sum(y, x), "activation");
}

Ref regnet_picture(const Config& c, Draft& d, const std::string& prefix) {
  const auto widths = c.sizes("hidden_sizes", {128, 192, 512, 1088});
  const auto depths = c.sizes("depths", {2, 6, 12, 2});
  if (widths.size() != depths.size()) c.fail("depths", "has not one entry for each hidden size");
  const std::string type = c.text("layer_type", "y");
  if (type != "x" && type != "y") c.fail("layer_type", "is neither \"x\" nor \"y\"");
  RegNetLayer n{.squeezes = type == "y", .activation = c.activation("hidden_act", "relu")};
  const std::int64_t group = c.size("groups_width", 64);
  const bool halved = c.flag("downsample_in_first_stage", true);
  n.out = c.size("embedding_size", 32);
  Ref x = regnet_convolution(d, prefix + "embedder.embedder", n.out, 3, 2, 1, n.activation,
                             d.image(c.size("num_channels", 3)));
  for (std::size_t s = 0; s < widths.size(); ++s) {
    d.layer(prefix + "encoder.stages", static_cast<std::int64_t>(s), "stage");
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      const Draft::In of(d, "layers." + std::to_string(i));
      n.in = n.out;
      n.out = widths[s];
      n.stride = i == 0 && (s > 0 || halved) ? 2 : 1;
      n.groups = std::max<std::int64_t>(1, n.out / group);
      if (n.out % n.groups != 0) c.fail("groups_width", "does not divide hidden_sizes");
      x = regnet_layer(d, n, x);
    }
  }
  d.outside("head");
  return x;
}

ModelSpec regnet_model(const Config& c) {
  Draft d;
  d.sum_loss(regnet_picture(c, d, ""));
  return picture_spec(d, 224, 1);
}

ModelSpec regnet_classifier(const Config& c) {
  Draft d;
  d.classes(d.linear({.name = "classifier.1", .out = labels_of(c)},
                     d.mean(regnet_picture(c, d, "regnet."))));
  return picture_spec(d, 224, 1);
}

// A convolution with a batch norm, and ReLU6 where it has one.
struct MobileConvolution {
  bool as_tensorflow = true;
  std::string activation;

  [[nodiscard]] Ref add(Draft& d, const std::string& name, std::int64_t out, std::int64_t kernel,
                        std::int64_t stride, bool each, bool active, Ref x,
                        std::int64_t dilation = 1) const {
    const std::string at = name.empty() ? name : name + ".";
    Convolve convolution = square(at + "convolution", out, kernel, stride, /*bias=*/false);
    convolution.each = each;
    convolution.dilation = dilation;
    convolution.padding = {dilation * (kernel / 2), dilation * (kernel / 2)};
    convolution.same = as_tensorflow;
    if (as_tensorflow) convolution.padding = {0, 0};
    x = d.batch_norm(at + "normalization", d.convolve(convolution, x));
    return active ? d.activate(activation, x, at + "activation") : x;
  }
};

Ref mobilenet_picture(const Config& c, Draft& d, const std::string& prefix) {
  const MobileConvolution layer{c.flag("tf_padding", true), c.activation("hidden_act", "relu6")};
  const double multiplier = c.ratio("depth_multiplier", 1);
  const std::int64_t least = c.size("min_depth", 8);
  const auto width = [&](std::int64_t depth) {
    return std::max(static_cast<std::int64_t>(static_cast<double>(depth) * multiplier), least);
  };
  std::int64_t depth = 32;
  std::int64_t channels = width(depth);
  Ref x = layer.add(d, prefix + "conv_stem", channels, 3, 2, false, true,
                    d.image(c.size("num_channels", 3)));
  constexpr std::array<std::int64_t, 13> strides{1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const auto number = static_cast<std::int64_t>(2 * i);
    d.layer(prefix + "layer", number, "depthwise");
    x = layer.add(d, "", channels, 3, strides[i], true, true, x);
    if (strides[i] == 2 || i == 0) depth *= 2;
    channels = width(depth);
    d.layer(prefix + "layer", number + 1, "pointwise");
    x = layer.add(d, "", channels, 1, 1, false, true, x);
  }
  d.outside("head");
  return x;
}

ModelSpec mobilenet_spec(const Config& c, Draft& d) {
  c.pass_over({"classifier_dropout_prob", "semantic_loss_ignore_index", "depth_divisible_by",
               "output_stride", "finegrained_output", "first_layer_is_expansion", "expand_ratio"});
  return picture_spec(d, c.size("image_size", 224), 1);
}

ModelSpec mobilenet_model(const Config& c) {
  Draft d;
  d.sum_loss(mobilenet_picture(c, d, ""));
  return mobilenet_spec(c, d);
}

ModelSpec mobilenet_classifier(const Config& c) {
  Draft d;
  classify(c, d, 0.999, d.mean(mobilenet_picture(c, d, "mobilenet_v1.")));
  return mobilenet_spec(c, d);
}

// What the last block leaves, and the convolution behind it.
struct MobileNet2 {
  Ref features = 0, top = 0;
};

MobileNet2 mobilenet2_picture(const Config& c, Draft& d, const std::string& prefix) {
  const MobileConvolution layer{c.flag("tf_padding", true), c.activation("hidden_act", "relu6")};
  const double multiplier = c.ratio("depth_multiplier", 1);
  const std::int64_t divisor = c.size("depth_divisible_by", 8);
  const std::int64_t least = c.size("min_depth", 8);
  const double expansion = c.ratio("expand_ratio", 6);
  const auto of_depth = [&](double depth) {
    return rounded_width(static_cast<double>(std::llrint(depth)), divisor, least);
  };
  const auto width = [&](std::int64_t depth) {
    return of_depth(static_cast<double>(depth) * multiplier);
  };
  const std::int64_t coarsest = c.size("output_stride", 32);
  constexpr std::array<std::int64_t, 17> depths{16, 24, 24, 32, 32,  32,  64,  64, 64,
                                                64, 96, 96, 96, 160, 160, 160, 320};
  constexpr std::array<std::int64_t, 16> strides{2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1};
  constexpr std::int64_t stem = 32;
  constexpr std::int64_t top = 1280;
  const std::string at = prefix + "conv_stem.";
  Ref x = layer.add(d, at + "first_conv", width(stem), 3, 2, false, true,
                    d.image(c.size("num_channels", 3)));
  if (!c.flag("first_layer_is_expansion", true)) {
    x = layer.add(d, at + "expand_1x1", width(stem), 1, 1, false, true, x);
  }
  x = layer.add(d, at + "conv_3x3", width(stem), 3, 1, true, true, x);
  std::int64_t channels = width(depths[0]);
  x = layer.add(d, at + "reduce_1x1", channels, 1, 1, false, false, x);
  std::int64_t apart = 2;  // places of the picture at hand
  std::int64_t dilation = 1;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    // Behind the coarsest picture the kernel's places go apart instead.
    const bool dilates = apart == coarsest;
    const std::int64_t stride = dilates ? 1 : strides[i];
    const std::int64_t by = dilates ? dilation : 1;
    if (dilates) dilation *= strides[i];
    apart *= stride;
    d.layer(prefix + "layer", static_cast<std::int64_t>(i), "block");
    const std::int64_t wide = of_depth(static_cast<double>(channels) * expansion);
    const std::int64_t out = width(depths[i + 1]);
    Ref y = layer.add(d, "expand_1x1", wide, 1, 1, false, true, x);
    y = layer.add(d, "conv_3x3", wide, 3, stride, true, true, y, by);
    y = layer.add(d, "reduce_1x1", out, 1, 1, false, false, y);
    x = stride == 1 && channels == out ? d.sum(x, y) : y;
    channels = out;
  }
  d.outside("head");
  const bool fine = c.flag("finegrained_output", true) && multiplier < 1;
  return {x, layer.add(d, prefix + "conv_1x1", fine ? top : width(top), 1, 1, false, true, x)};
}

ModelSpec mobilenet2_model(const Config& c) {
  Draft d;
  d.sum_loss(mobilenet2_picture(c, d, "").top);
  return mobilenet_spec(c, d);
}

ModelSpec mobilenet2_classifier(const Config& c) {
  Draft d;
  classify(c, d, 0.8, d.mean(mobilenet2_picture(c, d, "mobilenet_v2.").top));
  return mobilenet_spec(c, d);
}

// DeepLab's head (arXiv:1802.02611): the whole picture's mean beside each place.
ModelSpec mobilenet2_segmentation(const Config& c) {
  Draft d;
  const Ref features = mobilenet2_picture(c, d, "mobilenet_v2.").features;
  const MobileConvolution layer{c.flag("tf_padding", true), "relu"};
  constexpr std::int64_t width = 256;
  const std::string at = "segmentation_head.";
  const Ref whole = layer.add(d, at + "conv_pool", width, 1, 1, false, true,
                              d.pool({.largest = false, .to = 1}, features));
  const Ref mean = d.resize_as(whole, features);
  const Ref each = layer.add(d, at + "conv_aspp", width, 1, 1, false, true, features);
  Ref x = layer.add(d, at + "conv_projection", width, 1, 1, false, true, d.beside({mean, each}));
  x = d.drop_channels(c.rate("classifier_dropout_prob", 0.8), x);
  x = d.convolve(patches(at + "classifier.convolution", labels_of(c), 1), x);
  d.classes(d.resize({.to_image = true}, x));
  return mobilenet_spec(c, d);
}

}  // namespace

std::vector<Family> convolutional_kin_families() {
  return {{"EfficientNetModel", "efficientnet", efficientnet_model},
          {"EfficientNetForImageClassification", "efficientnet", efficientnet_classifier},
          {"RegNetModel", "regnet", regnet_model},
          {"RegNetForImageClassification", "regnet", regnet_classifier},
          {"MobileNetV1Model", "mobilenet_v1", mobilenet_model},
          {"MobileNetV1ForImageClassification", "mobilenet_v1", mobilenet_classifier},
          {"MobileNetV2Model", "mobilenet_v2", mobilenet2_model},
          {"MobileNetV2ForSemanticSegmentation", "mobilenet_v2", mobilenet2_segmentation},
          {"MobileNetV2ForImageClassification", "mobilenet_v2", mobilenet2_classifier}};
}

}  // namespace shardsim::models
