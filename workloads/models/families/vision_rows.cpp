#include "workloads/models/families/vision_rows.hpp"

#include <utility>

namespace shardsim::models {

std::vector<std::int64_t> by_stage(const Config& c, const std::string& key,
                                   std::vector<std::int64_t> otherwise) {
  const auto stages = static_cast<std::size_t>(c.size("num_encoder_blocks", 4));
  std::vector<std::int64_t> values = c.sizes(key, std::move(otherwise));
  if (values.size() < stages) c.fail(key, "has not one entry for each of num_encoder_blocks");
  return values;
}

Ref vit_layers(Draft& d, const VisionSizes& n, const std::string& prefix, Ref x) {
  const RowLayer layer{.attention = {.name = "attention",
                                     .heads = n.heads,
                                     .q_bias = n.qkv_bias,
                                     .k_bias = n.qkv_bias,
                                     .v_bias = n.qkv_bias,
                                     .dropout = n.attention_dropout,
                                     .fp32_softmax = true},
                       .up = "mlp.fc1",
                       .down = "mlp.fc2",
                       .hidden = n.hidden,
                       .width = n.width,
                       .activation = n.activation,
                       .dropout = n.dropout};
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "layers", i, "encoder");
    x = row_layer(d, layer, x);
  }
  d.outside("head");
  return x;
}

}  // namespace shardsim::models
