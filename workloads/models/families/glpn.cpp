// GLPN (arXiv:2201.07436): SegFormer's stages, and a decoder that chooses between what it has made
// so far and each stage's picture, place by place.
//
// Names and defaults as in transformers 5.23, modeling_glpn.py.
#include <fmt/format.h>

#include <array>
#include <string>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

const OverlappingBlock block_of_glpn = {.norms = {"layer_norm_1", "layer_norm_2"},
                                        .reduction = {"attention.self", "sr"},
                                        .attention = {.name = "attention",
                                                      .q = "self.query",
                                                      .k = "self.key",
                                                      .v = "self.value",
                                                      .o = "output.dense",
                                                      .plain = true},
                                        .products = {"dense1", "dense2"},
                                        .activation = "activation",
                                        .drops_between = true};

// What each stage leaves, a picture.
std::vector<Ref> glpn_stages(const Config& c, Draft& d, const OverlappingStages& n,
                             const std::string& prefix) {
  std::vector<Ref> left;
  Ref x = d.image(c.size("num_channels", 3));
  std::int64_t block = 0;
  for (std::size_t s = 0; s < n.stages.size(); ++s) {
    const OverlappingStage& stage = n.stages[s];
    const std::string number = std::to_string(s);
    const std::string at = fmt::format("{}encoder.patch_embeddings.{}", prefix, number);
    d.outside("stage" + number);
    x = d.convolve(square(at + ".proj", stage.width, stage.patch, stage.stride), x);
    x = d.norm(row_norm(at + ".layer_norm"), d.rows(x));
    for (std::int64_t i = 0; i < stage.depth; ++i) {
      d.layer(fmt::format("{}encoder.block.{}", prefix, number), i, "stage" + number);
      x = overlapping_block(d, n, stage, block_of_glpn, rising_rate(n.drop_path, block++, n.blocks),
                            x);
    }
    d.outside("stage" + number + ".end");
    const std::string norm = fmt::format("{}encoder.layer_norm.{}", prefix, number);
    x = d.copied_picture(d.norm(row_norm(norm), x));
    left.push_back(x);
  }
  d.outside("head");
  return left;
}

// Of two pictures each place takes a share of either.
Ref chosen_features(Draft& d, std::int64_t width, Ref local, Ref global) {
  const Draft::In of(d, "fusion");
  Ref x = d.beside({local, global});
  const std::array<std::int64_t, 2> widths{width, width / 2};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string name = "convolutional_layer" + std::to_string(i + 1);
    x = d.convolve(square(name + ".0", widths[i], 3), x);
    x = d.activate("relu", d.batch_norm(name + ".1", x), name + ".2");
  }
  const Ref shares =
      d.activate("sigmoid", d.convolve(square("convolutional_layer3", 2, 3), x), "sigmoid");
  return d.sum(d.product(local, d.width_part(0, 2, shares)),
               d.product(global, d.width_part(1, 2, shares)));
}

ModelSpec glpn_spec(const Config& c, Draft& d) {
  c.pass_over({"decoder_hidden_size", "max_depth", "head_in_index"});
  ModelSpec spec;
  constexpr std::int64_t usual = 224;
  constexpr std::int64_t coarsest = 32;
  spec.network = d.finish({.side = usual, .coarsest = coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec glpn_model(const Config& c) {
  Draft d;
  d.sum_loss(glpn_stages(c, d, read_overlapping_stages(c, {4, 4, 4, 4}, 0.1), "").back());
  return glpn_spec(c, d);
}

ModelSpec glpn_depth(const Config& c) {
  if (c.integer("head_in_index", -1) != -1) c.fail("head_in_index", "only -1 is supported");
  Draft d;
  const OverlappingStages n = read_overlapping_stages(c, {4, 4, 4, 4}, 0.1);
  const std::vector<Ref> stages = glpn_stages(c, d, n, "glpn.");
  const std::int64_t width = c.size("decoder_hidden_size", 64);
  Ref left = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::size_t s = stages.size() - 1 - i;
    const Draft::In of(d, "decoder.stages." + std::to_string(i));
    Ref x = stages[s];
    if (n.stages[s].width != width) x = d.convolve(patches("convolution", width, 1), x);
    if (i > 0) x = chosen_features(d, width, x, left);
    left = d.resize({.times = 2}, x);
  }
  Ref x = d.resize({.times = 2}, left);
  x = d.activate("relu", d.convolve(square("head.head.0", width, 3), x), "head.head.1");
  x = d.convolve(square("head.head.2", 1, 3), x);
  d.sum_loss(d.scaled(d.activate("sigmoid", x, "head.sigmoid")));
  return glpn_spec(c, d);
}

}  // namespace

std::vector<Family> glpn_families() {
  return {{"GLPNModel", "glpn", glpn_model}, {"GLPNForDepthEstimation", "glpn", glpn_depth}};
}

}  // namespace shardsim::models
