// The Vision Transformer of google-research/big_vision (models/vit.py), with its parameter names
// and shapes. Our own description, since big_vision has no config file:
//
//   {"model_type": "big_vision_vit", "width": 768, "depth": 12, "mlp_dim": 3072, "num_heads": 12,
//    "patch_size": [16, 16], "image_size": [224, 224], "num_classes": 1000, "pool_type": "gap"}
//
// The patch embedding's convolution has stride = kernel, so it is exactly an einsum over the image
// [batch, patch_rows*patch_height, patch_cols*patch_width, channels]. A token is a patch: the
// dimension patch_rows*patch_cols; keys have it as key_rows*key_cols. Pooling is the mean over
// patches, the loss softmax cross entropy. Images come in the compute dtype.
#pragma once

#include "workloads/models/build.hpp"

namespace shardsim {

[[nodiscard]] Workload build_vit(const ModelConfig& config, const WorkloadOptions& options);

}  // namespace shardsim
