// t5x' T5 (examples/t5): layers one by one, kernels of two dimensions, [embed, joined_kv], and the
// names of dimensions that its standard rules speak of.
//
//   encoder.block.{}.layer.0.SelfAttention.q.weight of layer 3 is
//   encoder/layers_3/attention/query/kernel [512, 512]    embed, joined_kv
//
// Of both sides the biases of distances lie beside the layers. Models of T5's first version share
// their tables as logits_via_embedding says.
//
// Source: google-research/t5x at 0ef0332, t5x/examples/t5/network.py, layers.py.
#pragma once

#include <optional>

#include "workloads/views/view.hpp"

namespace shardsim {

[[nodiscard]] ViewedLayers t5x_layers(const ViewInput& input);
[[nodiscard]] std::optional<ViewedParameter> t5x_parameter(const ViewInput& input,
                                                           TensorId parameter);

}  // namespace shardsim
