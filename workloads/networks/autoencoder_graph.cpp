#include <fmt/format.h>

#include "workloads/networks/diffusers_attention.hpp"
#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {
namespace {

class CoderGraph {
 public:
  CoderGraph(NetworkGraph& n, const Autoencoder& net, std::string side, Picture& x)
      : n_(n), net_(net), side_(std::move(side)), x_(x) {}

  void convolve(const char* name, std::int64_t width) {
    x_ = n_.convolve(GraphContext::inside(side_, name), {.out = width}, x_);
  }

  void middle() {
    const std::int64_t width = n_.c.g.label_size(x_.channels);
    const auto residual = [&](std::int32_t number) {
      n_.next_layers(side_ + ".mid_block.resnets", {number});
      x_ = n_.residual(n_.c.layer, block(width), x_, no_tensor);
    };
    residual(0);
    if (net_.attention) {
      n_.next_layers(side_ + ".mid_block.attentions", {0});
      attend();
    }
    residual(1);
  }

  // `resize` after each level but the last.
  template <class Resize>
  void levels(const char* name, const std::vector<std::int64_t>& widths, std::int64_t blocks,
              const Resize& resize) {
    for (std::size_t l = 0; l < widths.size(); ++l) {
      n_.next_layers(GraphContext::inside(side_, name), {static_cast<std::int32_t>(l)});
      for (std::int64_t i = 0; i < blocks; ++i) {
        x_ =
            n_.residual(n_.c.inside(fmt::format("resnets.{}", i)), block(widths[l]), x_, no_tensor);
      }
      if (l + 1 < widths.size()) resize();
    }
  }

  void finish(std::int64_t width) {
    const std::string norm = GraphContext::inside(side_, "conv_norm_out");
    x_ = n_.activate(net_.activation, norm + ".act", n_.group_norm(norm, net_.groups, x_));
    convolve("conv_out", width);
  }

 private:
  [[nodiscard]] ResidualBlock block(std::int64_t width) const {
    return {.out = width, .groups = net_.groups, .activation = net_.activation, .timed = false};
  }

  // One head as wide as the image has channels.
  void attend() {
    GraphContext& c = n_.c;
    const TensorId rows =
        n_.rows_of(c.inside("rows"), n_.group_norm(c.inside("group_norm"), net_.groups, x_));
    Attention attention = diffusers_attention("", 1, c.g.label_size(c.hidden));
    attention.q_bias = attention.k_bias = attention.v_bias = true;
    const GraphBuilder::Within of(c.g, OpModule::attention);
    const TensorId out = add(c, attention, rows);
    x_ = n_.add(c.inside("sum"), n_.picture_of(c.inside("places"), out, x_), x_);
  }

  NetworkGraph& n_;
  const Autoencoder& net_;
  std::string side_;
  Picture& x_;
};

// Deviation and variance are computed, though only the mean is decoded.
Picture mean_of(NetworkGraph& n, const Picture& moments) {
  GraphContext& c = n.c;
  Picture mean = moments;
  mean.channels = c.label("channels", c.g.label_size(moments.channels) / 2);
  const Dims dims{{c.batch}, {mean.channels}, {mean.rows}, {mean.columns}};
  mean.id = c.g.slices("moments", moments.id, {{"mean", dims}}, {moments.channels, mean.channels})
                .front();
  return mean;
}

}  // namespace

TensorId add(NetworkGraph& n, const Autoencoder& net, std::int64_t side) {
  n.first_block("encoder");
  Picture x = n.input(net.in, side);
  n.live = {&x.id};
  CoderGraph encoder(n, net, "encoder", x);
  encoder.convolve("conv_in", net.widths.front());
  encoder.levels("down_blocks", net.widths, net.blocks,
                 [&] { x = n.halve(n.c.inside("downsamplers.0"), x, /*one_side=*/true); });
  encoder.middle();
  n.next_block("latents");
  encoder.finish(2 * net.latents);
  const auto pointwise = [&](const char* name) {
    x = n.convolve(name, {.out = n.c.g.label_size(x.channels), .kernel = 1, .padding = 0}, x);
  };
  if (net.quantized) pointwise("quant_conv");
  x = mean_of(n, x);
  if (net.unquantized) pointwise("post_quant_conv");
  CoderGraph decoder(n, net, "decoder", x);
  decoder.convolve("conv_in", net.widths.back());
  decoder.middle();
  const std::vector<std::int64_t> widths(net.widths.rbegin(), net.widths.rend());
  decoder.levels("up_blocks", widths, net.blocks + 1,
                 [&] { x = n.double_size(n.c.inside("upsamplers.0"), x); });
  n.next_block("head");
  decoder.finish(net.out);
  return n.mean_loss(x.id);
}

}  // namespace shardsim::models
