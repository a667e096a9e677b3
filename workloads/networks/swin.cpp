#include "workloads/networks/swin.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/networks/convolution.hpp"

namespace shardsim::models {
namespace {

std::int64_t rounded_up(std::int64_t size, std::int64_t to) { return (size + to - 1) / to * to; }

Norm layer_norm_of(std::string name) { return {NormKind::layer, std::move(name), /*bias=*/true}; }

struct BlockSizes {
  std::int64_t side = 0;  // in patches
  std::int64_t heads = 0;
  bool shifted = false;
  bool drops = false;
};

// [examples * windows, heads, w^2, head_dim] -> rows of the same windows.
Value attend(Eager& e, const Swin& net, const BlockSizes& n, const Value& windows,
             std::int64_t window) {
  const Scope at(e, "attention");
  const std::int64_t width = windows.last();
  const std::int64_t places = window * window;
  const auto by_heads = [&](const Value& rows) {
    return Eager::view(rows, {rows.shape[0], n.heads, places, width / n.heads});
  };
  const Value q = by_heads(run_linear(e, "q_proj", windows, width, net.qkv_bias));
  const Value k = by_heads(run_linear(e, "k_proj", windows, width, net.qkv_bias));
  const Value v = by_heads(run_linear(e, "v_proj", windows, width, net.qkv_bias));
  Value bias;
  {
    // The index of distances is a buffer, which is not of the checkpoint.
    const Scope of(e, "relative_position_bias");
    const std::int64_t distances = (2 * net.window - 1) * (2 * net.window - 1);
    const Value table = e.parameter("relative_position_bias_table", {distances, n.heads});
    const Value looked_up =
        e.index(table, e.input(DType::i64, {places * places}), {places * places, n.heads});
    bias = e.copy(looked_up, {1, n.heads, places, places});
  }
  if (n.shifted) {
    bias = e.make({windows.shape[0], n.heads, places, places}, e.dtype(), true);
  }
  const ScoreRules rules{.dropout = net.attention_dropout, .bias = bias};
  const Value out = run_attention_kernel(e, q, k, v, rules);
  return run_linear(e, "o_proj", out, width, /*bias=*/true);
}

Value run_block(Eager& e, const Swin& net, const BlockSizes& n, Value x) {
  const std::int64_t window = std::min(net.window, n.side);
  const std::int64_t padded = rounded_up(n.side, window);
  const std::int64_t per_image = (padded / window) * (padded / window);
  const Value normed = run(e, layer_norm_of("layernorm_before"), x);
  const Value windows = e.copy(normed, {x.shape[0] * per_image, window * window, x.last()});
  Value out = e.dropout(attend(e, net, n, windows, window), net.dropout);
  out = e.copy(out, x.shape);
  if (n.drops) {
    const Scope at(e, "drop_path");
    out = e.multiply(out, e.constant(e.dtype(), {x.shape[0], 1, 1}));
  }
  x = e.add(x, out);
  Mlp mlp;
  mlp.width = static_cast<std::int64_t>(net.mlp_ratio * static_cast<double>(x.last()));
  mlp.form = MlpForm::plain;
  mlp.activation = net.activation;
  mlp.bias = true;
  mlp.up = "fc1";
  mlp.down = "fc2";
  mlp.dropout = net.dropout;
  return e.add(x, run(e, mlp, run(e, layer_norm_of("layernorm_after"), x)));
}

// 2 x 2 patches side by side, to half of their width.
Value merge(Eager& e, const Value& x, std::int64_t side) {
  const Scope at(e, "downsample");
  const std::int64_t half = (side + 1) / 2;
  const Value four = e.copy(x, {x.shape[0], half * half, 4 * x.last()});
  return run_linear(e, "reduction", run(e, layer_norm_of("norm"), four), 2 * x.last(), false);
}

Value embed(Eager& e, const Swin& net, const ImageStep& step) {
  const Scope at(e, net.prefix + "embeddings");
  const std::int64_t side = rounded_up(step.side, net.patch);
  Value x = e.input(e.dtype(), {step.batch, net.channels, side, side});
  {
    const Scope of(e, "patch_embeddings");
    x = run(e,
            Convolution{.name = "projection",
                        .out = net.width,
                        .kernel = net.patch,
                        .stride = net.patch,
                        .padding = 0},
            x);
  }
  x = run(e, layer_norm_of("norm"), rows_of(x));
  if (net.positions) {
    const std::int64_t patches = (net.side / net.patch) * (net.side / net.patch);
    x = e.add(x, e.parameter("position_embeddings", {1, patches, net.width}));
  }
  return e.dropout(x, net.dropout);
}

}  // namespace

Value run(Eager& e, const Swin& net, const ImageStep& step) {
  Value x = embed(e, net, step);
  std::int64_t side = rounded_up(step.side, net.patch) / net.patch;
  bool first = true;
  for (std::size_t s = 0; s < net.stages.size(); ++s) {
    if (side < net.window) {
      throw InputError(e.options().place,
                       fmt::format("an image of {} leaves stage {} {} patches a side, fewer than a "
                                   "window's {}",
                                   step.side, s, side, net.window));
    }
    e.open_layer(fmt::format("{}encoder.layers.{}", net.prefix, s), "stage");
    for (std::int64_t i = 0; i < net.stages[s].blocks; ++i) {
      const Scope at(e, fmt::format("blocks.{}", i));
      x = run_block(e, net,
                    {.side = side,
                     .heads = net.stages[s].heads,
                     .shifted = i % 2 == 1 && side > net.window,
                     .drops = net.drop_path > 0 && !first},
                    x);
      first = false;
    }
    if (s + 1 < net.stages.size()) {
      x = merge(e, x, side);
      side = (side + 1) / 2;
    }
    e.close_layer();
  }
  x = run(e, layer_norm_of(net.prefix + "layernorm"), x);
  return e.make({x.shape[0], x.last()}, x.dtype, true);
}

}  // namespace shardsim::models
