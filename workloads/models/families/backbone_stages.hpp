// Networks over images as others read them: what each stage leaves. ResNet, ConvNeXt (DINOv3's,
// too) and Swin.
//
// Source: transformers 5.23.0, modeling_resnet.py, modeling_convnext.py,
// modeling_dinov3_convnext.py, modeling_swin.py.
#pragma once

#include <string>
#include <vector>

#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {

struct StagePictures {
  std::vector<Ref> pictures{};
  std::vector<std::int64_t> widths{};
  std::int64_t coarsest = 1;  // what the image's side has to be a multiple of
  bool rows = false;          // they are rows of places
};

[[nodiscard]] StagePictures resnet_stages(const Config& c, Draft& d, const std::string& prefix);
[[nodiscard]] StagePictures convnext_stages(const Config& c, Draft& d, const std::string& prefix);
[[nodiscard]] StagePictures dinov3_convnext_stages(const Config& c, Draft& d);
// `always_shifts`: windows of every second block are moved even where a stage is one window.
[[nodiscard]] StagePictures swin_stages(const Config& c, Draft& d, const std::string& prefix,
                                        bool always_shifts);

// Of all stages those that a file's out_features name, or the last.
[[nodiscard]] StagePictures wanted_of(const Config& c, const StagePictures& all);

// The stages that a backbone's own configuration names, normed as its class does it.
[[nodiscard]] StagePictures backbone_pictures(const Config& c, Draft& d, const std::string& prefix);

}  // namespace shardsim::models
