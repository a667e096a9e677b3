// UPerNet's heads over the stages of a backbone.
//
// Names and defaults as in transformers 5.23, modeling_upernet.py.
#include "workloads/models/families/backbone_stages.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/upernet_head.hpp"

namespace shardsim::models {
namespace {

const UpernetNames names{.convolution = "conv",
                         .norm = "batch_norm",
                         .before_scale = "psp_modules.",
                         .behind_scale = ".1",
                         .bottleneck = "bottleneck"};

Ref auxiliary_head(const Config& c, Draft& d, const StagePictures& stages) {
  constexpr std::size_t read = 2;  // of the stages
  if (stages.pictures.size() <= read) {
    c.fail("use_auxiliary_head", "reads the third of the backbone's stages, which has fewer");
  }
  const std::int64_t channels = stages.widths[read];
  if (c.size("auxiliary_in_channels", channels) != channels) {
    c.fail("auxiliary_in_channels", "is not the third stage's width");
  }
  return upernet_auxiliary_head(c, d, names, stages.pictures[read], channels);
}

ModelSpec upernet(const Config& c) {
  Draft d;
  const StagePictures stages = backbone_pictures(part(c, "backbone_config"), d, "backbone.");
  const std::int64_t width = c.size("hidden_size", 512);
  const Ref logits = upernet_head(c, d, names, stages.pictures, width);
  c.pass_over({"auxiliary_loss_weight", "loss_ignore_index", "backbone", "use_pretrained_backbone",
               "use_timm_backbone", "backbone_kwargs", "auxiliary_in_channels",
               "auxiliary_channels", "auxiliary_num_convs", "auxiliary_concat_input"});
  d.classes(d.resize({.to_image = true}, logits));
  if (c.flag("use_auxiliary_head", true)) {
    d.classes(d.resize({.to_image = true}, auxiliary_head(c, d, stages)));
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
