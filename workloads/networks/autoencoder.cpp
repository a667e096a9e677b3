#include "workloads/networks/autoencoder.hpp"

#include <fmt/format.h>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/networks/unet_blocks.hpp"

namespace shardsim::models {
namespace {

// One head as wide as the image has channels.
Value attend(Eager& e, const Autoencoder& net, const Value& x) {
  const Value rows = rows_of(group_norm(e, "group_norm", net.groups, x));
  const std::int64_t width = rows.last();
  const auto project = [&](const char* name) {
    const Value all = run_strided_linear(e, name, rows, width, /*bias=*/true);
    return Eager::view(all, {rows.shape[0], 1, rows.shape[1], width});
  };
  const Value q = project("to_q");
  const Value k = project("to_k");
  const Value v = project("to_v");
  const Value out = run_attention_kernel(e, q, k, v, {});
  return e.add(Eager::view(run_linear(e, "to_out.0", out, width, /*bias=*/true), x.shape), x);
}

struct Run {
  Eager& e;
  const Autoencoder& net;
  std::string side;  // "encoder" or "decoder"

  ResidualBlock block(std::int64_t width) const {
    return {.out = width, .groups = net.groups, .activation = net.activation, .timed = false};
  }

  Value convolve(const char* name, std::int64_t width, const Value& x) const {
    const Scope at(e, side);
    return run(e, Convolution{.name = name, .out = width}, x);
  }

  Value middle(Value x) const {
    const auto in_layer = [&](const std::string& name, const auto& make) {
      e.open_layer(fmt::format("{}.mid_block.{}", side, name), "middle");
      x = make();
      e.close_layer();
    };
    const ResidualBlock residual = block(x.shape[1]);
    in_layer("resnets.0", [&] { return run(e, "", residual, x, {}); });
    if (net.attention) in_layer("attentions.0", [&] { return attend(e, net, x); });
    in_layer("resnets.1", [&] { return run(e, "", residual, x, {}); });
    return x;
  }

  // `resize` after each level but the last.
  template <class Resize>
  Value levels(const char* name, const std::vector<std::int64_t>& widths, std::int64_t blocks,
               Value x, const Resize& resize) const {
    for (std::size_t l = 0; l < widths.size(); ++l) {
      e.open_layer(fmt::format("{}.{}.{}", side, name, l), name);
      for (std::int64_t i = 0; i < blocks; ++i) {
        x = run(e, fmt::format("resnets.{}", i), block(widths[l]), x, {});
      }
      if (l + 1 < widths.size()) x = resize(x);
      e.close_layer();
    }
    return x;
  }

  Value finish(std::int64_t width, Value x) const {
    {
      const Scope at(e, side);
      x = group_norm(e, "conv_norm_out", net.groups, x);
      const Scope of(e, "conv_act");
      x = activate(e, net.activation, x);
    }
    return convolve("conv_out", width, x);
  }
};

Value pointwise(Eager& e, const char* name, const Value& x) {
  return run(e, Convolution{.name = name, .out = x.shape[1], .kernel = 1, .padding = 0}, x);
}

// Deviation and variance are computed, though only the mean is decoded.
Value mean_of(Eager& e, const Value& moments) {
  Shape half = moments.shape;
  half[1] /= 2;
  Value mean = Eager::view(moments, half);
  const Value log = e.apply(Eager::view(moments, half), Keeps::input);
  e.apply(e.scaled(log), Keeps::result);
  e.apply(log, Keeps::result);
  return mean;
}

}  // namespace

std::int64_t coarsest(const Autoencoder& net) { return std::int64_t{1} << (net.widths.size() - 1); }

Value run(Eager& e, const Autoencoder& net, const ImageStep& step) {
  const Run encoder{e, net, "encoder"};
  const Value image = e.input(e.dtype(), {step.batch, net.in, step.side, step.side});
  Value x = encoder.convolve("conv_in", net.widths.front(), image);
  x = encoder.levels("down_blocks", net.widths, net.blocks, x,
                     [&](const Value& value) { return halve(e, value, /*one_side=*/true); });
  x = encoder.finish(2 * net.latents, encoder.middle(x));
  if (net.quantized) x = pointwise(e, "quant_conv", x);
  x = mean_of(e, x);
  if (net.unquantized) x = pointwise(e, "post_quant_conv", x);
  const Run decoder{e, net, "decoder"};
  x = decoder.middle(decoder.convolve("conv_in", net.widths.back(), x));
  const std::vector<std::int64_t> widths(net.widths.rbegin(), net.widths.rend());
  x = decoder.levels("up_blocks", widths, net.blocks + 1, x,
                     [&](const Value& value) { return double_size(e, value); });
  return decoder.finish(net.out, x);
}

}  // namespace shardsim::models
