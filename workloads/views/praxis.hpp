// praxis' TransformerLm with repeated layers: its weights' names and shapes, layers stacked in
// front, no names of dimensions (strategy "praxis" goes by the weights' names).
//
//   GPT-3   params/lm/transformer/repeat/sub/x_layers_0/self_attention/combined_qkv/w
//                                                              [layers, 3, model, heads, head]
//   Llama   .../self_attention/query/w [layers, model, heads, head], ff_layer/ffn_layer1_gate/...
//   Mixtral .../ff_layer/wi_0, wi_gate_0 [layers, experts, model, width], wo_0, gate
//
// Source: google/praxis 1.4.0, layers/{transformers,attentions,transformer_models}.py; google/paxml
// at b397693, tasks/lm/params.
#pragma once

#include <optional>
#include <vector>

#include "workloads/views/view.hpp"

namespace shardsim {

[[nodiscard]] ViewedLayers praxis_layers(const ViewInput& input);
[[nodiscard]] std::optional<ViewedParameter> praxis_parameter(const ViewInput& input,
                                                              TensorId parameter);

}  // namespace shardsim
