// big_vision's towers of images and texts (SigLIP): flax' names, layers of each tower scanned in
// front, no names of dimensions.
//
//   vision_model.encoder.layers.{}.self_attn.q_proj.weight of 12 layers is
//   params/img/Transformer/encoderblock/MultiHeadDotProductAttention_0/query/kernel
//                                                                    [12, 768, 12, 64]
//   text_model... lies under params/txt/Encoder_0/encoderblock, pooling under params/img/MAPHead_0
//
// transformers' one matrix of the pooling's queries, keys and values is three leaves.
//
// Source: google-research/big_vision at 0127fb6, models/vit.py (scan=True), models/proj/image_text/
// {two_towers,text_transformer}.py; the tower of images as in tests/golden/param_trees' PaliGemma.
#pragma once

#include <optional>

#include "workloads/views/view.hpp"

namespace shardsim {

[[nodiscard]] ViewedLayers big_vision_layers(const ViewInput& input);
[[nodiscard]] std::optional<ViewedParameter> big_vision_parameter(const ViewInput& input,
                                                                  TensorId parameter);

}  // namespace shardsim
