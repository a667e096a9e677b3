#include <fmt/format.h>

#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {
namespace {

Picture normed(NetworkGraph& n, const std::string& name, const NormedConvolution& k,
               const std::string& activation, const Picture& x) {
  const Convolution convolution{
      .out = k.out, .kernel = k.kernel, .stride = k.stride, .padding = k.kernel / 2, .bias = false};
  const Picture y =
      n.batch_norm(name + ".normalization", n.convolve(name + ".convolution", convolution, x));
  return activation.empty() ? y : n.activate(activation, name + ".activation", y);
}

Picture residual_layer(NetworkGraph& n, const ResNet& net, const std::string& name,
                       const Picture& x, std::int64_t width, std::int64_t stride) {
  const std::vector<NormedConvolution> parts = residual_convolutions(net, width, stride);
  Picture out = x;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    out = normed(n, fmt::format("{}.layer.{}", name, i), parts[i], last ? "" : net.activation, out);
  }
  Picture beside = x;
  if (n.c.g.label_size(x.channels) != width || stride != 1) {
    beside = normed(n, name + ".shortcut", {width, 1, stride}, "", x);
  }
  return n.activate(net.activation, name + ".activation", n.add(name + ".sum", out, beside));
}

// The largest of 3 x 3 places, every other one.
Picture maximum(NetworkGraph& n, const std::string& name, const Picture& x) {
  GraphContext& c = n.c;
  const auto half = [&](LabelId label) { return (c.g.label_size(label) - 1) / 2 + 1; };
  const LabelId height = c.label("kernel_rows", 3);
  const LabelId width = c.label("kernel_columns", 3);
  Picture y = x;
  y.rows = c.label("rows", half(x.rows));
  y.columns = c.label("columns", half(x.columns));
  y.id = c.g.largest(name, {x.id, {{c.batch}, {x.channels}, {y.rows, height}, {y.columns, width}}},
                     {{c.batch}, {x.channels}, {y.rows}, {y.columns}}, {height, width});
  return y;
}

}  // namespace

TensorId add(NetworkGraph& n, const ResNet& net, std::int64_t side) {
  GraphContext& c = n.c;
  n.first_block("embedder");
  const std::string embedder = net.prefix + "embedder";
  Picture x = normed(n, embedder + ".embedder", {net.stem, 7, 2}, net.activation,
                     n.input(net.channels, side));
  x = maximum(n, embedder + ".pooler", x);
  n.live = {&x.id};
  for (std::size_t s = 0; s < net.stages.size(); ++s) {
    const ResNetStage& stage = net.stages[s];
    n.next_layers(net.prefix + "encoder.stages", {static_cast<std::int32_t>(s)});
    for (std::int64_t i = 0; i < stage.layers; ++i) {
      x = residual_layer(n, net, c.inside(fmt::format("layers.{}", i)), x, stage.width,
                         i == 0 ? stage.stride : 1);
    }
  }
  n.next_block("head");
  const TensorId mean = c.g.mean("pooler", x.id, {{c.batch}, {x.channels}});
  const LabelId classes = c.label("classes", c.spec.head.vocab);
  const TensorId logits = c.linear({c.spec.head.name, {classes}, {x.channels}, /*bias=*/true}, mean,
                                   {{c.batch}, {classes}});
  return c.cross_entropy(logits, classes, /*fp32=*/false);
}

}  // namespace shardsim::models
