// Row "praxis": the weights of a tree split as lingvo's and praxis' layers split them. One of
//
//   {"name": "praxis", "weights": [["ff_layer/ffn_layer1/linear/w", ["data", "mdl"]],
//                                  ["layer_norm", null]],
//    "repeat_prefix": [["x_layers_0/", [-1]]]}
//   {"name": "praxis", "map_1d": [["replica", "data"]], "map_2d": [["replica", "data"], null]}
//   {"name": "praxis", "shard_on_batch_dim": true}
//
// weights: the first pattern found in a leaf's name gives its tensor_split_dims_mapping; null, and
// no pattern at all, leave it whole. repeat_prefix: the first pattern found gives the
// repeat_prefix_split_dims_mapping of the dimensions that are stacked in front. Both together:
//
//   transformer/repeat/sub/x_layers_0/ff_layer/ffn_layer1/linear/w [96, 12288, 49152]
//     -> P(None, data, mdl)
//
// map_Nd: a leaf's rank decides. shard_on_batch_dim: dimension 0 over the whole mesh.
//
// Patterns are searched for as Python's re.search does; praxis itself has no patterns, a layer
// hands the mapping to its weights. What is refused: praxis_split_dims.hpp.
#pragma once

#include "strategies/rules/rule_system.hpp"

namespace shardsim {

[[nodiscard]] SpecAssignment assign_praxis(const ParameterTree& tree, const Mesh& mesh,
                                           const JsonReader& strategy);

}  // namespace shardsim
