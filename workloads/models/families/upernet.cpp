// UPerNet (arXiv:1807.10221): of a backbone's stages the last is seen at several sizes at once,
// each is added to the next larger one, and all of them together give each place's class. A second
// head reads one stage alone.
//
// Names and defaults as in transformers 5.23, modeling_upernet.py.
#include "workloads/models/families/backbone_stages.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

Ref upernet_module(Draft& d, const std::string& name, std::int64_t out, std::int64_t kernel,
                   Ref x) {
  const Draft::In of(d, name);
  x = d.convolve(square("conv", out, kernel, 1, /*bias=*/false), x);
  return d.activate("relu", d.batch_norm("batch_norm", x), "activation");
}

// The last stage's picture beside means of it over squares, of as many a side as each scale says.
Ref upernet_scales(const Config& c, Draft& d, std::int64_t width, Ref x) {
  std::vector<Ref> parts{x};
  const std::vector<std::int64_t> scales = c.sizes("pool_scales", {1, 2, 3, 6});
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const Ref pooled = d.pool({.largest = false, .to = scales[i]}, x);
    const std::string name = "psp_modules." + std::to_string(i) + ".1";
    parts.push_back(d.resize_as(upernet_module(d, name, width, 1, pooled), x));
  }
  return upernet_module(d, "bottleneck", width, 3, d.beside(parts));
}

Ref upernet_head(const Config& c, Draft& d, const StagePictures& stages) {
  const Draft::In of(d, "decode_head");
  const std::int64_t width = c.size("hidden_size", 512);
  const std::size_t last = stages.pictures.size() - 1;
  std::vector<Ref> sides;
  for (std::size_t s = 0; s < last; ++s) {
    const std::string name = "lateral_convs." + std::to_string(s);
    sides.push_back(upernet_module(d, name, width, 1, stages.pictures[s]));
  }
  sides.push_back(upernet_scales(c, d, width, stages.pictures[last]));
  for (std::size_t s = last; s > 0; --s) {
    sides[s - 1] = d.sum(sides[s - 1], d.resize_as(sides[s], sides[s - 1]));
  }
  std::vector<Ref> out;
  for (std::size_t s = 0; s < last; ++s) {
    out.push_back(upernet_module(d, "fpn_convs." + std::to_string(s), width, 3, sides[s]));
  }
  out.push_back(sides[last]);
  for (std::size_t s = last; s > 0; --s) out[s] = d.resize_as(out[s], out[0]);
  const Ref joined = last > 0 ? d.beside(out) : out[0];
  return d.convolve(patches("classifier", labels_of(c), 1),
                    upernet_module(d, "fpn_bottleneck", width, 3, joined));
}

Ref upernet_auxiliary_head(const Config& c, Draft& d, const StagePictures& stages) {
  const Draft::In of(d, "auxiliary_head");
  constexpr std::size_t read = 2;  // of the stages
  if (stages.pictures.size() <= read) {
    c.fail("use_auxiliary_head", "reads the third of the backbone's stages, which has fewer");
  }
  const Ref x = stages.pictures[read];
  const std::int64_t width = c.size("auxiliary_channels", 256);
  const std::int64_t in = c.size("auxiliary_in_channels", stages.widths[read]);
  if (in != stages.widths[read]) c.fail("auxiliary_in_channels", "is not the third stage's width");
  const std::int64_t layers = c.count("auxiliary_num_convs", 1);
  if (layers == 0 && in != width) c.fail("auxiliary_num_convs", "0 needs auxiliary_channels of it");
  Ref out = x;
  for (std::int64_t i = 0; i < layers; ++i) {
    out = upernet_module(d, "convs." + std::to_string(i), width, 3, out);
  }
  if (c.flag("auxiliary_concat_input", false)) {
    out = upernet_module(d, "conv_cat", width, 3, d.beside({x, out}));
  }
  return d.convolve(patches("classifier", labels_of(c), 1), out);
}

ModelSpec upernet(const Config& c) {
  Draft d;
  const StagePictures stages = backbone_pictures(part(c, "backbone_config"), d, "backbone.");
  const Ref logits = upernet_head(c, d, stages);
  c.pass_over({"auxiliary_loss_weight", "loss_ignore_index", "backbone", "use_pretrained_backbone",
               "use_timm_backbone", "backbone_kwargs", "auxiliary_in_channels",
               "auxiliary_channels", "auxiliary_num_convs", "auxiliary_concat_input"});
  d.classes(d.resize({.to_image = true}, logits));
  if (c.flag("use_auxiliary_head", true)) {
    d.classes(d.resize({.to_image = true}, upernet_auxiliary_head(c, d, stages)));
  }
  ModelSpec spec;
  constexpr std::int64_t usual = 512;  // of its image processor
  spec.network = d.finish({.side = usual, .coarsest = stages.coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

}  // namespace

std::vector<Family> upernet_families() {
  return {{"UperNetForSemanticSegmentation", "upernet", upernet}};
}

}  // namespace shardsim::models
