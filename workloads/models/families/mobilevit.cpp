// MobileViT (arXiv:2110.02178): MobileNet 2's blocks, and between convolutions transformers in
// which a place attends to those that have its number in the other squares of places.
#include <array>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

struct MobileVit {
  std::string activation;
  double expansion = 4, ratio = 2, dropout = 0, attention_dropout = 0;
  std::int64_t kernel = 3, patch = 2, heads = 4;
  bool qkv_bias = true;
};

Ref normed_convolution(Draft& d, const MobileVit& n, const Convolve& convolution, bool active,
                       Ref x) {
  Convolve inside = convolution;
  inside.bias = false;
  inside.name = convolution.name + ".convolution";
  x = d.batch_norm(convolution.name + ".normalization", d.convolve(inside, x));
  return active ? d.activate(n.activation, x, convolution.name + ".activation") : x;
}

Ref inverted_residual(Draft& d, const MobileVit& n, std::int64_t in, std::int64_t out,
                      std::int64_t stride, Ref x, std::int64_t dilation = 1) {
  constexpr std::int64_t multiple = 8;
  const auto wide = rounded_width(
      static_cast<double>(static_cast<std::int64_t>(static_cast<double>(in) * n.expansion)),
      multiple, multiple);
  Convolve each = square("conv_3x3", wide, 3, stride);
  each.each = true;
  each.dilation = dilation;
  each.padding = {dilation, dilation};
  Ref y = normed_convolution(d, n, square("expand_1x1", wide, 1), true, x);
  y = normed_convolution(d, n, each, true, y);
  y = normed_convolution(d, n, square("reduce_1x1", out, 1), false, y);
  return stride == 1 && in == out ? d.sum(x, y) : y;
}

RowLayer mobilevit_layer(const MobileVit& n, std::int64_t hidden) {
  return {.attention = {.name = "attention",
                        .heads = n.heads,
                        .q = "attention.query",
                        .k = "attention.key",
                        .v = "attention.value",
                        .o = "output.dense",
                        .q_bias = n.qkv_bias,
                        .k_bias = n.qkv_bias,
                        .v_bias = n.qkv_bias,
                        .dropout = n.attention_dropout,
                        .plain = true},
          .hidden = hidden,
          .width = static_cast<std::int64_t>(static_cast<double>(hidden) * n.ratio),
          .activation = n.activation,
          .dropout = n.dropout};
}

// A picture as squares, which transformers read, and back.
Ref transformed(Draft& d, const MobileVit& n, std::int64_t width, std::int64_t hidden,
                std::int64_t layers, Ref x) {
  const Ref before = x;
  x = normed_convolution(d, n, square("conv_kxk", width, n.kernel), true, x);
  x = d.convolve(square("conv_1x1.convolution", hidden, 1, 1, /*bias=*/false), x);
  const Ref rows = d.rows(x);
  x = d.places_apart(n.patch, rows);
  for (std::int64_t i = 0; i < layers; ++i) {
    const Draft::In of(d, "transformer.layer." + std::to_string(i));
    x = row_layer(d, mobilevit_layer(n, hidden), x);
  }
  x = d.copied_picture(d.from_windows(n.patch, d.norm(row_norm("layernorm"), x), rows));
  x = normed_convolution(d, n, square("conv_projection", width, 1), true, x);
  return normed_convolution(d, n, square("fusion", width, n.kernel), true, d.beside({before, x}));
}

// Places of the image that one of the last picture stands for; 32 unless stages dilate.
std::int64_t output_stride(const Config& c) {
  const std::int64_t stride = c.size("output_stride", 32);
  if (stride != 8 && stride != 16 && stride != 32) {
    c.fail("output_stride", "only 8, 16 and 32 are supported");
  }
  return stride;
}

Ref mobilevit_picture(const Config& c, Draft& d, const std::string& prefix, bool expands = true) {
  const MobileVit n{.activation = c.activation("hidden_act", "silu"),
                    .expansion = c.ratio("expand_ratio", 4),
                    .ratio = c.ratio("mlp_ratio", 2),
                    .dropout = c.rate("hidden_dropout_prob", 0.1),
                    .attention_dropout = c.rate("attention_probs_dropout_prob", 0),
                    .kernel = c.size("conv_kernel_size", 3),
                    .patch = c.size("patch_size", 2),
                    .heads = c.size("num_attention_heads", 4),
                    .qkv_bias = c.flag("qkv_bias", true)};
  const auto widths = c.sizes("neck_hidden_sizes", {16, 32, 64, 96, 128, 160, 640});
  const auto hidden = c.sizes("hidden_sizes", {144, 192, 240});
  constexpr std::size_t necks = 7;
  constexpr std::size_t transformers = 3;
  if (widths.size() != necks) c.fail("neck_hidden_sizes", "has not seven entries");
  if (hidden.size() != transformers) c.fail("hidden_sizes", "has not three entries");
  const std::int64_t coarsest = output_stride(c);

  Ref x = normed_convolution(d, n, square(prefix + "conv_stem", widths[0], 3, 2), true,
                             d.image(c.size("num_channels", 3)));
  const auto residuals = [&](std::int64_t number, std::int64_t stride, std::int64_t layers) {
    d.layer(prefix + "encoder.layer", number, "stage");
    const auto at = static_cast<std::size_t>(number);
    for (std::int64_t i = 0; i < layers; ++i) {
      const Draft::In of(d, "layer." + std::to_string(i));
      x = inverted_residual(d, n, i == 0 ? widths[at] : widths[at + 1], widths[at + 1],
                            i == 0 ? stride : 1, x);
    }
  };
  residuals(0, 1, 1);
  residuals(1, 2, 3);
  constexpr std::array<std::int64_t, transformers> layers{2, 4, 3};
  std::int64_t dilation = 1;
  for (std::size_t s = 0; s < transformers; ++s) {
    d.layer(prefix + "encoder.layer", static_cast<std::int64_t>(s + 2), "stage");
    static_cast<void>(c.divided("hidden_sizes", hidden[s], "num_attention_heads", n.heads));
    {
      const Draft::In of(d, "downsampling_layer");
      const bool dilates = coarsest < std::int64_t{8} << s;  // places that it would leave
      if (dilates) dilation *= 2;
      x = inverted_residual(d, n, widths[s + 2], widths[s + 3], dilates ? 1 : 2, x,
                            dilates ? dilation / 2 : 1);
    }
    x = transformed(d, n, widths[s + 3], hidden[s], layers[s], x);
  }
  d.outside("head");
  if (!expands) return x;
  return normed_convolution(d, n, square(prefix + "conv_1x1_exp", widths.back(), 1), true, x);
}

ModelSpec mobilevit_spec(const Config& c, Draft& d) {
  c.pass_over({"classifier_dropout_prob", "aspp_out_channels", "atrous_rates", "aspp_dropout_prob",
               "semantic_loss_ignore_index"});
  ModelSpec spec;
  const std::int64_t smaller = output_stride(c);
  spec.network =
      d.finish({.side = c.size("image_size", 256), .coarsest = smaller * c.size("patch_size", 2)});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec mobilevit_model(const Config& c) {
  Draft d;
  d.sum_loss(mobilevit_picture(c, d, ""));
  return mobilevit_spec(c, d);
}

ModelSpec mobilevit_classifier(const Config& c) {
  Draft d;
  classify(c, d, 0.1, d.mean(mobilevit_picture(c, d, "mobilevit.")));
  return mobilevit_spec(c, d);
}

// DeepLab's head (arXiv:1706.05587): places near and far, and the whole picture's mean.
ModelSpec mobilevit_segmentation(const Config& c) {
  Draft d;
  const MobileVit n{.activation = "relu"};
  const Ref features = mobilevit_picture(c, d, "mobilevit.", /*expands=*/false);
  const std::int64_t width = c.size("aspp_out_channels", 256);
  const auto rates = c.sizes("atrous_rates", {6, 12, 18});
  constexpr std::size_t known = 3;
  if (rates.size() != known) c.fail("atrous_rates", "has not three entries");
  const std::string at = "segmentation_head.aspp.";
  std::vector<Ref> seen{normed_convolution(d, n, square(at + "convs.0", width, 1), true, features)};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    Convolve far = square(at + "convs." + std::to_string(i + 1), width, 3);
    far.dilation = rates[i];
    far.padding = {rates[i], rates[i]};
    seen.push_back(normed_convolution(d, n, far, true, features));
  }
  const Ref mean = normed_convolution(d, n, square(at + "convs.4.conv_1x1", width, 1), true,
                                      d.pool({.largest = false, .to = 1}, features));
  seen.push_back(d.resize_as(mean, features));
  Ref x = normed_convolution(d, n, square(at + "project", width, 1), true, d.beside(seen));
  x = d.drop(c.rate("aspp_dropout_prob", 0.1), x);
  x = d.drop_channels(c.rate("classifier_dropout_prob", 0.1), x);
  x = d.convolve(patches("segmentation_head.classifier.convolution", labels_of(c), 1), x);
  d.classes(d.resize({.to_image = true}, x));
  return mobilevit_spec(c, d);
}

}  // namespace

std::vector<Family> mobilevit_families() {
  return {{"MobileViTModel", "mobilevit", mobilevit_model},
          {"MobileViTForSemanticSegmentation", "mobilevit", mobilevit_segmentation},
          {"MobileViTForImageClassification", "mobilevit", mobilevit_classifier}};
}

}  // namespace shardsim::models
