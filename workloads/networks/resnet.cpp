#include "workloads/networks/resnet.hpp"

#include <fmt/format.h>

#include "workloads/layers/activation.hpp"
#include "workloads/networks/convolution.hpp"

namespace shardsim::models {
namespace {

// Convolution and batch norm, and an activation where there is one.
Value normed_convolution(Eager& e, const std::string& name, const NormedConvolution& n,
                         const std::string& activation, const Value& x) {
  const Scope at(e, name);
  const Convolution convolution{.name = "convolution",
                                .out = n.out,
                                .kernel = n.kernel,
                                .stride = n.stride,
                                .padding = n.kernel / 2,
                                .bias = false};
  Value out = batch_norm(e, "normalization", run(e, convolution, x));
  if (activation.empty()) return out;
  const Scope of(e, "activation");
  return activate(e, activation, out);
}

Value run_layer(Eager& e, const ResNet& net, const Value& x, std::int64_t width,
                std::int64_t stride) {
  const std::vector<NormedConvolution> parts = residual_convolutions(net, width, stride);
  Value out = x;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    out = normed_convolution(e, fmt::format("layer.{}", i), parts[i], last ? "" : net.activation,
                             out);
  }
  Value beside = x;
  if (x.shape[1] != width || stride != 1) {
    beside = normed_convolution(e, "shortcut", {width, 1, stride}, "", x);
  }
  const Scope of(e, "activation");
  return activate(e, net.activation, e.add(out, beside));
}

Value maximum(Eager& e, const Value& x) {
  const auto half = [](std::int64_t size) { return (size - 1) / 2 + 1; };
  const Shape places{x.shape[0], x.shape[1], half(x.shape[2]), half(x.shape[3])};
  const Scope at(e, "pooler");
  e.save(x);
  return e.index(x, e.constant(DType::i64, places), places);
}

}  // namespace

std::vector<NormedConvolution> residual_convolutions(const ResNet& net, std::int64_t width,
                                                     std::int64_t stride) {
  if (!net.bottleneck) return {{width, 3, stride}, {width, 3}};
  constexpr std::int64_t reduction = 4;
  const std::int64_t narrow = width / reduction;
  return {{narrow, 1, net.stride_first ? stride : 1},
          {narrow, 3, net.stride_first ? 1 : stride},
          {width, 1}};
}

Value run(Eager& e, const ResNet& net, const ImageStep& step) {
  Value x = e.input(e.dtype(), {step.batch, net.channels, step.side, step.side});
  {
    const Scope at(e, net.prefix + "embedder");
    x = normed_convolution(e, "embedder", {net.stem, 7, 2}, net.activation, x);
    x = maximum(e, x);
  }
  for (std::size_t s = 0; s < net.stages.size(); ++s) {
    const ResNetStage& stage = net.stages[s];
    e.open_layer(fmt::format("{}encoder.stages.{}", net.prefix, s), "stage");
    for (std::int64_t i = 0; i < stage.layers; ++i) {
      const Scope at(e, fmt::format("layers.{}", i));
      x = run_layer(e, net, x, stage.width, i == 0 ? stage.stride : 1);
    }
    e.close_layer();
  }
  return e.make({x.shape[0], x.shape[1]}, x.dtype, true);
}

}  // namespace shardsim::models
