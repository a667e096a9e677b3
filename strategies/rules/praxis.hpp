// Row "praxis": the weights of a tree split as lingvo's and praxis' layers split them, and the
// inputs of a step as their train and eval steps do.
//
//   {"name": "praxis", "weights": [["ff_layer/ffn_layer1/linear/w", ["data", "mdl"]],
//                                  ["layer_norm", null]],
//    "repeat_prefix": [["x_layers_0/", [-1]]],
//    "inputs_split_mapping": {"map_1d": [["replica", "data"]],
//                             "map_2d": [["replica", "data"], null]}}
//
// weights: the first pattern found in a leaf's name gives its tensor_split_dims_mapping; null, and
// no pattern at all, leave it whole. repeat_prefix: the first pattern found gives the
// repeat_prefix_split_dims_mapping of the dimensions that are stacked in front. Both together:
//
//   transformer/repeat/sub/x_layers_0/ff_layer/ffn_layer1/linear/w [96, 12288, 49152]
//     -> P(None, data, mdl)
//
// inputs_split_mapping: inputs enter with dimension 0 over the whole mesh
// (shard_on_batch_dim_partition_spec) and are brought to the mapping of their rank before anything
// reads them (reshard_input_based_on_rank_fn); one of null leaves them as they enter. Left out, the
// batch is brought to replica and data; where the strategy names "batch_axes" instead, inputs enter
// as these say.
//
// Patterns are searched for as Python's re.search does; praxis itself has no patterns, a layer
// hands the mapping to its weights. What is refused: praxis_split_dims.hpp.
#pragma once

#include "strategies/rules/rule_system.hpp"

namespace shardsim {

[[nodiscard]] SpecAssignment assign_praxis(const ParameterTree& tree, const Mesh& mesh,
                                           const JsonReader& strategy);

// Batch and sequence as "inputs_split_mapping" says, dimension 0 of all mappings and dimension 1 of
// map_2d; a step whose mappings are all null has its batch over the whole mesh. InputError where
// dimensions 0 differ.
[[nodiscard]] SystemAxes praxis_axes(const JsonReader& strategy, const Mesh& mesh);
// InputError for map_Nd and shard_on_batch_dim beside "weights": they are of inputs.
void refuse_keys_of_inputs(const JsonReader& strategy);
// Both of a step with a mapping: all axes of the mesh; each input by its rank.
[[nodiscard]] std::optional<std::vector<std::string>> praxis_entering_axes(
    const JsonReader& strategy, const Mesh& mesh);
[[nodiscard]] std::optional<InputSpecs> praxis_inputs(std::size_t rank, const JsonReader& strategy,
                                                      const Mesh& mesh);
// For inputs of one to four dimensions.
[[nodiscard]] Json inputs_split_mapping_of(const std::vector<std::string>& batch,
                                           const std::vector<std::string>& sequence);

}  // namespace shardsim
