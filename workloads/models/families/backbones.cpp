// Networks over images without what classifies behind them: ResNet, ConvNeXt, DINOv3's ConvNeXt,
// Swin. What leaves them are the last stage's places; their mean, normed or not, beside them.
#include "workloads/models/families/backbone_stages.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

ModelSpec backbone_spec(const Config& c, Draft& d, std::int64_t coarsest) {
  c.pass_over({"num_stages", "out_features", "out_indices", "stage_names", "_out_features",
               "_out_indices", "encoder_stride"});
  ModelSpec spec;
  spec.network = d.finish({.side = c.size("image_size", 224), .coarsest = coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec resnet_model(const Config& c) {
  Draft d;
  d.sum_loss(resnet_stages(c, d, "").pictures.back());
  return backbone_spec(c, d, 1);
}

ModelSpec convnext_model(const Config& c) {
  Draft d;
  const StagePictures stages = convnext_stages(c, d, "");
  static_cast<void>(d.norm(row_norm("layernorm"), d.mean(stages.pictures.back())));
  d.sum_loss(stages.pictures.back());
  return backbone_spec(c, d, stages.coarsest);
}

ModelSpec dinov3_convnext_model(const Config& c) {
  Draft d;
  const StagePictures stages = dinov3_convnext_stages(c, d);
  const Ref x = stages.pictures.back();
  d.sum_loss(d.norm(row_norm("layer_norm"),
                    d.behind({d.rows(x), d.rows(d.pool({.largest = false, .to = 1}, x))})));
  return backbone_spec(c, d, stages.coarsest);
}

ModelSpec swin_model(const Config& c) {
  Draft d;
  const StagePictures stages = swin_stages(c, d, "", /*always_shifts=*/false);
  d.sum_loss(d.norm(row_norm("layernorm"), stages.pictures.back()));
  ModelSpec spec = backbone_spec(c, d, stages.coarsest);
  std::get<Blueprint>(*spec.network).takes_one_side = true;
  return spec;
}

}  // namespace

std::vector<Family> backbone_families() {
  return {{"ResNetModel", "resnet", resnet_model},
          {"ConvNextModel", "convnext", convnext_model},
          {"DINOv3ConvNextModel", "dinov3_convnext", dinov3_convnext_model},
          {"SwinModel", "swin", swin_model}};
}

}  // namespace shardsim::models
