// Views that are made by rules rather than tables, and so have every family: the module tree of
// transformers under paths with "/", weights of products in JAX's order, names of dimensions from
// what labels are for.
//
//   model.layers.{}.self_attn.q_proj.weight [kv_heads*group*head_dim, hidden] of layer 3 is
//   easydel       model/layers/3/self_attn/q_proj/kernel      [hidden, heads*head_dim]
//   flax          model/layers/3/self_attn/q_proj/kernel      [embed, heads, kv]
//   flax-scanned  model/layers/self_attn/q_proj/kernel        [layers, embed, heads, kv]
//   levanter      model/layers/stacked/self_attn/q_proj/weight
//                                      [layers, kv_heads, q_heads_per_group, head_size, embed]
//
// Our own networks have flax's names and shapes already; only their layers may be stacked.
//
// Sources: erfanzar/EasyDeL at 0f9fe406 (nn.Linear's kernel, RMSNorm's kernel, LayerNorm's scale,
// experts one by one under the hub's names); google-research/t5x at cc342d4, t5x/partitioning.py
// (names of axes); stanford-crfm/levanter, models/mistral.py, mixtral.py (axes, out_first).
#pragma once

#include <optional>
#include <vector>

#include "workloads/views/view.hpp"

namespace shardsim {

[[nodiscard]] ViewedLayers easydel_layers(const ViewInput& input);
[[nodiscard]] std::optional<ViewedParameter> easydel_parameter(const ViewInput& input,
                                                               TensorId parameter);
[[nodiscard]] ViewedLayers flax_layers(const ViewInput& input);
[[nodiscard]] ViewedLayers flax_scanned_layers(const ViewInput& input);
[[nodiscard]] std::optional<ViewedParameter> flax_parameter(const ViewInput& input,
                                                            TensorId parameter);
[[nodiscard]] ViewedLayers levanter_layers(const ViewInput& input);
[[nodiscard]] std::optional<ViewedParameter> levanter_parameter(const ViewInput& input,
                                                                TensorId parameter);

}  // namespace shardsim
