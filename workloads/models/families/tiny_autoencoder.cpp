// diffusers' tiny autoencoder (TAESD): plain convolutions and ReLU, in place of a diffusion model's
// own. Between both halves latents are bytes, so that no gradient reaches the encoder.
#include <fmt/format.h>

#include "workloads/models/families/diffusion_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

struct TinyHalf {
  std::vector<std::int64_t> widths, blocks;
  std::string activation;
};

// Three convolutions beside what they read; modules of a list are numbered.
Ref tiny_block(Draft& d, const TinyHalf& n, std::int64_t width, Ref x) {
  const Draft::In of(d, "conv");
  Ref y = x;
  for (int i = 0; i < 3; ++i) {
    y = d.convolve(square(std::to_string(2 * i), width, 3), y);
    if (i < 2) y = d.activate(n.activation, y, std::to_string(2 * i + 1));
  }
  return d.activate("relu", d.sum(y, x), "fuse");
}

TinyHalf read_half(const Config& c, const std::string& side, std::vector<std::int64_t> blocks) {
  TinyHalf n{c.sizes(side + "_block_out_channels", {64, 64, 64, 64}),
             c.sizes("num_" + side + "_blocks", std::move(blocks)), c.text("act_fn", "relu")};
  if (n.widths.size() != n.blocks.size()) {
    c.fail("num_" + side + "_blocks", "has not one entry for each width");
  }
  for (const std::int64_t width : n.widths) {
    if (width != n.widths[0]) {
      c.fail(side + "_block_out_channels", "widths that differ are not supported");
    }
  }
  n.activation = c.activation("act_fn", "relu");
  return n;
}

Ref tiny_encoder(Draft& d, const TinyHalf& n, std::int64_t out, Ref x) {
  const Draft::In of(d, "encoder.layers");
  std::int64_t number = 0;
  const auto next = [&] { return std::to_string(number++); };
  x = d.scaled(x);
  for (std::size_t i = 0; i < n.widths.size(); ++i) {
    x = d.convolve(square(next(), n.widths[i], 3, i == 0 ? 1 : 2, /*bias=*/i == 0), x);
    for (std::int64_t k = 0; k < n.blocks[i]; ++k) {
      const Draft::In block(d, next());
      x = tiny_block(d, n, n.widths[i], x);
    }
  }
  return d.convolve(square(next(), out, 3), x);
}

Ref tiny_decoder(Draft& d, const TinyHalf& n, std::int64_t out, std::int64_t times, Ref x) {
  const Draft::In of(d, "decoder.layers");
  std::int64_t number = 0;
  const auto next = [&] { return std::to_string(number++); };
  x = d.convolve(square(next(), n.widths[0], 3), x);
  x = d.activate(n.activation, x, next());
  for (std::size_t i = 0; i < n.widths.size(); ++i) {
    for (std::int64_t k = 0; k < n.blocks[i]; ++k) {
      const Draft::In block(d, next());
      x = tiny_block(d, n, n.widths[i], x);
    }
    const bool last = i + 1 == n.widths.size();
    if (!last) {
      x = d.resize({.times = times}, x);
      ++number;
    }
    x = d.convolve(square(next(), last ? out : n.widths[i + 1], 3, 1, /*bias=*/last), x);
  }
  return d.scaled(x);
}

ModelSpec tiny_autoencoder(const Config& c) {
  c.pass_over({"latent_magnitude", "latent_shift", "force_upcast", "scaling_factor", "shift_factor",
               "block_out_channels"});
  if (c.text("upsample_fn", "nearest") != "nearest") {
    c.fail("upsample_fn", "only \"nearest\" is supported");
  }
  const TinyHalf in = read_half(c, "encoder", {1, 3, 3, 3});
  const TinyHalf out = read_half(c, "decoder", {3, 3, 3, 1});
  const std::int64_t latents = c.size("latent_channels", 4);
  const std::int64_t times = c.size("upsampling_scaling_factor", 2);
  const std::int64_t halvings = std::int64_t{1} << (in.widths.size() - 1);
  Draft d;
  static_cast<void>(tiny_encoder(d, in, latents, d.image(c.size("in_channels", 3))));
  const std::int64_t side = c.size("sample_size", 512);
  // Made of bytes within the step, with nothing to learn before them.
  const Ref bytes = d.scaled(d.image(latents, side / halvings, side / halvings));
  d.sum_loss(tiny_decoder(d, out, c.size("out_channels", 3), times, bytes));
  d.note("latents between both halves are bytes: the encoder learns nothing");
  return drafted(d, {.side = side, .coarsest = halvings, .takes_one_side = true});
}

}  // namespace

std::vector<Family> tiny_autoencoder_families() {
  return {{"AutoencoderTiny", "autoencoder_tiny", tiny_autoencoder}};
}

}  // namespace shardsim::models
