// Split-dims mappings of lingvo and praxis: what each dimension of an array is split over.
//
//   mesh axes replica, data, mdl
//   [0, 2]                        -> P(replica, mdl)        numbers are positions in the mesh
//   ["data", -1]                  -> P(data, None)          any negative number, as null, is whole
//   [["replica", "data"], "mdl"]  -> P((replica, data), mdl)
//
// Mappings of arrays come from their rank (map_1d, map_2d, ...), are the batch split over all axes,
// or belong to a weight. A weight that is stacked (repeated layers, pipeline stages) has prefix
// dimensions with a mapping of their own, whole unless it says otherwise:
//
//   tensor [null, "mdl"] behind prefix ["stage", null] -> P(stage, None, None, mdl)
//
// Reproduced on purpose: true counts as 1 and false as 0; -1 inside a tuple stays there as a null,
// which JAX refuses only when the spec is applied; an axis may be given twice, which is left to JAX
// as well; the length of a map_Nd is not compared with the rank.
//
// Source: tensorflow/lingvo lingvo/jax/base_layer.py and trainer_lib.py at b64acee3b; google/praxis
// base_layer.py, google/paxml trainer_lib.py.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"

namespace shardsim {

// One dimension as to_partition_spec returns it.
struct SplitDim {
  std::string axis;  // empty: whole, or a tuple
  bool is_tuple = false;
  std::vector<SplitDim> parts;  // of a tuple
  friend bool operator==(const SplitDim&, const SplitDim&) = default;
};

using SplitDims = std::vector<SplitDim>;

[[nodiscard]] std::vector<std::string> axis_names(const Mesh& mesh);

// to_partition_spec. Throws RuleError (AssertionError) for a position beyond the mesh, an axis that
// it lacks, and whatever is no number, name, list or null.
[[nodiscard]] SplitDims read_split_dims(const JsonReader& mapping,
                                        const std::vector<std::string>& mesh_axes);
// As jax 0.7 and later keep it: an empty tuple is null, a tuple of one is its part. Throws
// RuleError (ValueError) for a tuple inside a tuple.
[[nodiscard]] SplitDims canonical(const SplitDims& dims, const Place& place);
// canonical, as a spec. A null inside a tuple stays, as an axis that no mesh has.
[[nodiscard]] PartitionSpec to_partition_spec(const SplitDims& dims, const Place& place);
[[nodiscard]] Json to_json(const SplitDims& dims);  // tuples of one stay tuples

// infer_partition_spec_based_on_rank_fn: the mapping under "map_{rank}d" of an object; nothing when
// it is null, which leaves the array alone. Throws RuleError (ValueError) when the key is missing.
[[nodiscard]] std::optional<SplitDims> split_dims_by_rank(
    const JsonReader& maps, std::size_t rank, const std::vector<std::string>& mesh_axes);

// shard_on_batch_dim_partition_spec: dimension 0 over the whole mesh, whether or not it divides.
// Throws RuleError (AssertionError) for a scalar.
[[nodiscard]] SplitDims batch_split_dims(std::size_t rank,
                                         const std::vector<std::string>& mesh_axes,
                                         const Place& place);

// A weight's shape has `rank` dimensions behind `prefix_rank` stacked ones; a mapping that is not
// given leaves them whole.
struct WeightSplit {
  std::string name;  // for messages
  std::size_t rank = 0;
  std::optional<SplitDims> tensor;
  std::size_t prefix_rank = 0;
  std::optional<SplitDims> prefix;
};

// var_partition_specs: one entry per dimension. Throws RuleError (AssertionError) when the length
// of a mapping is not its rank.
[[nodiscard]] SplitDims weight_split_dims(const WeightSplit& weight, const Place& place);

}  // namespace shardsim
