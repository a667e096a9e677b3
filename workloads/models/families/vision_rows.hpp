// What families share that write their network down step by step (networks/blueprint.hpp).
#pragma once

#include <string>
#include <vector>

#include "workloads/models/families/vision.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {

// A list with an entry for each of the file's num_encoder_blocks, or more. Throws InputError where
// it has fewer.
[[nodiscard]] std::vector<std::int64_t> by_stage(const Config& c, const std::string& key,
                                                 std::vector<std::int64_t> otherwise);

// The layers of a ViT under `prefix`, as transformers names them since 5.0: "layers", "mlp.fc1".
[[nodiscard]] Ref vit_layers(Draft& d, const VisionSizes& n, const std::string& prefix, Ref x);

}  // namespace shardsim::models
