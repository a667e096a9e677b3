#include "workloads/networks/convnext.hpp"

#include <fmt/format.h>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/networks/convolution.hpp"

namespace shardsim::models {
namespace {

constexpr std::int64_t own_kernel = 7;  // of the convolution of each channel

// [b, c, h, w] as [b, h, w, c] and back: views.
Value channels_last(const Value& x) {
  return Eager::view(x, {x.shape[0], x.shape[2], x.shape[3], x.shape[1]});
}
Value channels_first(const Value& x) {
  return Eager::view(x, {x.shape[0], x.shape[3], x.shape[1], x.shape[2]});
}

Value norm_channels(Eager& e, const char* name, const Value& x) {
  return run(e, Norm{NormKind::layer, name, /*bias=*/true}, channels_last(x));
}

Value convolve_each(Eager& e, const Value& x) {
  const Scope at(e, "dwconv");
  const Value weight = e.parameter("weight", {x.shape[1], 1, own_kernel, own_kernel});
  e.parameter("bias", {x.shape[1]});
  return e.convolution(x, weight, {x.shape[2], x.shape[3]});
}

Value respond(Eager& e, const Value& x) {
  const Scope at(e, "grn");
  const Shape channels{1, 1, 1, x.last()};
  const Value weight = e.parameter("weight", channels);
  const Value bias = e.parameter("bias", channels);
  const Value norms = e.make({x.shape[0], 1, 1, x.last()}, x.dtype, true);
  e.save(x);
  e.save(norms);
  const Value ratio = e.divide(norms, e.scaled(e.reduce_last(norms)));
  const Value answered = e.multiply(weight, e.multiply(x, ratio));
  return e.add(e.add(answered, bias), x);
}

Value run_layer(Eager& e, const ConvNext& net, const Value& x, bool drops) {
  Value out = norm_channels(e, "layernorm", convolve_each(e, x));
  out = run_linear(e, "pwconv1", out, 4 * out.last(), /*bias=*/true);
  {
    const Scope of(e, "act");
    out = activate(e, net.activation, out);
  }
  if (net.responds) out = respond(e, out);
  out = run_linear(e, "pwconv2", out, x.shape[1], /*bias=*/true);
  if (net.scaled) out = e.multiply(e.parameter("layer_scale_parameter", {x.shape[1]}), out);
  if (drops) {
    const Scope of(e, "drop_path");
    out = e.multiply(e.scaled(out), e.constant(e.dtype(), {x.shape[0], 1, 1, 1}));
  }
  return e.add(x, channels_first(out));
}

}  // namespace

std::int64_t coarsest(const ConvNext& net) {
  return net.patch << (net.stages.empty() ? 0 : net.stages.size() - 1);
}

Value run(Eager& e, const ConvNext& net, const ImageStep& step) {
  Value x = e.input(e.dtype(), {step.batch, net.channels, step.side, step.side});
  {
    const Scope at(e, net.prefix + "embeddings");
    x = run(e,
            Convolution{.name = "patch_embeddings",
                        .out = net.stages.front().width,
                        .kernel = net.patch,
                        .stride = net.patch,
                        .padding = 0},
            x);
    x = channels_first(norm_channels(e, "layernorm", x));
  }
  bool is_first = true;
  for (std::size_t s = 0; s < net.stages.size(); ++s) {
    e.open_layer(fmt::format("{}encoder.stages.{}", net.prefix, s), "stage");
    if (s > 0) {
      x = channels_first(norm_channels(e, "downsampling_layer.0", x));
      x = run(e,
              Convolution{.name = "downsampling_layer.1",
                          .out = net.stages[s].width,
                          .kernel = 2,
                          .stride = 2,
                          .padding = 0},
              x);
    }
    for (std::int64_t i = 0; i < net.stages[s].layers; ++i) {
      const Scope at(e, fmt::format("layers.{}", i));
      x = run_layer(e, net, x, net.drop_path > 0 && !is_first);
      is_first = false;
    }
    e.close_layer();
  }
  const Value mean = e.make({x.shape[0], x.shape[1]}, x.dtype, true);
  return run(e, Norm{NormKind::layer, net.prefix + "layernorm", /*bias=*/true}, mean);
}

}  // namespace shardsim::models
