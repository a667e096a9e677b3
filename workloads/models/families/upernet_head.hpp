// UPerNet's heads (arXiv:1807.10221) over pictures of an encoder, the largest first: the last is
// seen at several sizes at once, each is added to the next larger one, and all of them together
// give each place's class. A second head reads one picture alone.
//
// Sources: transformers 5.23.0, modeling_upernet.py (UperNetHead, UperNetFCNHead) and
// modeling_beit.py (BeitUperHead, BeitFCNHead), which differ in names.
#pragma once

#include <string>
#include <vector>

#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {

struct UpernetNames {
  std::string convolution, norm;  // of a module: a convolution, a batch norm, ReLU
  std::string before_scale, behind_scale;
  std::string bottleneck;
};

// Each place's class, "decode_head"; what is between has `width` channels.
[[nodiscard]] Ref upernet_head(const Config& c, Draft& d, const UpernetNames& names,
                               const std::vector<Ref>& pictures, std::int64_t width);

// "auxiliary_head" over a picture of so many `channels`. Throws InputError: no convolutions where
// these are not "auxiliary_channels".
[[nodiscard]] Ref upernet_auxiliary_head(const Config& c, Draft& d, const UpernetNames& names,
                                         Ref picture, std::int64_t channels);

}  // namespace shardsim::models
