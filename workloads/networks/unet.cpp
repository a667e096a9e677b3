#include "workloads/networks/unet.hpp"

#include <fmt/format.h>

#include "workloads/layers/activation.hpp"

namespace shardsim::models {
namespace {

// Of the time and, where there are any, of pooled text and sizes.
Value embed_time(Eager& e, const UNet& net, std::int64_t batch) {
  const std::int64_t numbers = net.down.front().block.out;
  Value time = embed_condition(e, "time_embedding", e.constant(e.dtype(), {batch, numbers}),
                               net.time_width, "act", net.activation);
  if (net.guidance_width > 0) {
    const Scope at(e, "time_embedding.cond_proj");
    e.parameter("weight", {numbers, net.guidance_width});
  }
  if (net.classes > 0) {
    const Scope at(e, "class_embedding");
    const Value table = e.embedding_table("weight", {net.classes, net.time_width});
    time = e.add(time, e.embedding(e.input(DType::i64, {batch}), table));
  }
  if (net.pooled_width == 0) return time;
  const Value pooled = e.constant(e.dtype(), {batch, net.pooled_width});
  return e.add(time,
               embed_condition(e, "add_embedding", pooled, net.time_width, "act", net.activation));
}

struct UnetRun {
  Eager& e;
  const UNet& net;
  Value time;
  Context context{};
  std::vector<Value> skips{};

  Value block(const UNetLevel& level, std::int64_t i, const Value& x) {
    Value out = run(e, fmt::format("resnets.{}", i), level.block, x, time);
    if (!level.transformer) return out;
    return run(e, fmt::format("attentions.{}", i), level.transformer_of(i), out, context);
  }

  Value down(Value x) {
    skips.push_back(x);
    for (std::size_t l = 0; l < net.down.size(); ++l) {
      e.open_layer(fmt::format("down_blocks.{}", l), "down");
      for (std::int64_t i = 0; i < net.down[l].blocks; ++i) {
        x = block(net.down[l], i, x);
        skips.push_back(x);
      }
      if (l + 1 < net.down.size()) {
        x = halve(e, x, /*one_side=*/false);
        skips.push_back(x);
      }
      e.close_layer();
    }
    return x;
  }

  // A residual block, then a transformer and another residual block as often as it says.
  Value middle(Value x) {
    if (!net.middle) return x;
    const UNetLevel& level = *net.middle;
    const auto residual = [&](std::int64_t i, const Value& in) {
      e.open_layer(fmt::format("mid_block.resnets.{}", i), "middle");
      Value out = run(e, "", level.block, in, time);
      e.close_layer();
      return out;
    };
    x = residual(0, x);
    for (std::int64_t i = 0; i < level.blocks; ++i) {
      if (level.transformer) {
        e.open_layer(fmt::format("mid_block.attentions.{}", i), "middle");
        x = run(e, "", level.transformer_of(i), x, context);
        e.close_layer();
      }
      x = residual(i + 1, x);
    }
    return x;
  }

  Value beside_skip(const Value& x) {
    Shape both = x.shape;
    both[1] += skips.back().shape[1];
    skips.pop_back();
    return e.copy(x, both);
  }

  Value up(Value x) {
    for (std::size_t l = 0; l < net.up.size(); ++l) {
      e.open_layer(fmt::format("up_blocks.{}", l), "up");
      for (std::int64_t i = 0; i < net.up[l].blocks; ++i) {
        x = block(net.up[l], i, beside_skip(x));
      }
      if (l + 1 < net.up.size()) x = double_size(e, x);
      e.close_layer();
    }
    return x;
  }
};

}  // namespace

std::int64_t coarsest(const UNet& net) { return std::int64_t{1} << (net.down.size() - 1); }

Value run(Eager& e, const UNet& net, const ImageStep& step) {
  UnetRun unet{.e = e, .net = net, .time = embed_time(e, net, step.batch)};
  unet.context.batch = step.batch;
  const bool projects = net.read_width > 0;
  unet.context.encoder =
      e.input(e.dtype(), {step.batch, step.text, projects ? net.read_width : net.text_width});
  if (projects) {
    unet.context.encoder =
        run_linear(e, "encoder_hid_proj", unet.context.encoder, net.text_width, /*bias=*/true);
  }
  const Value latents = e.input(e.dtype(), {step.batch, net.in, step.side, step.side});
  const auto around = [&](const char* name, std::int64_t out, std::int64_t kernel) {
    return Convolution{.name = name, .out = out, .kernel = kernel, .padding = (kernel - 1) / 2};
  };
  Value x = run(e, around("conv_in", net.down.front().block.out, net.first_kernel), latents);
  x = unet.up(unet.middle(unet.down(x)));
  x = group_norm(e, "conv_norm_out", net.groups, x);
  {
    const Scope at(e, "conv_act");
    x = activate(e, net.activation, x);
  }
  return run(e, around("conv_out", net.out, net.last_kernel), x);
}

}  // namespace shardsim::models
