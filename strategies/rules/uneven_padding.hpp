// Padding of dimensions that their axes do not divide, as lingvo and praxis add it where arrays
// enter a program and cut it off where they leave: at the end of each dimension,
//
//   padding = (p - size % p) % p,  p = product of the sizes of the dimension's axes
//
// Example: 51200 vocabulary entries over mdl=24: 51200 % 24 = 8, padded by 16 to 51216, 2134 on
// each device. That is what shard_size of sharding/sharding.hpp counts.
//
// Reproduced on purpose: spec and shape are paired entry by entry and the longer is cut off, so a
// spec shorter than the rank pads fewer dimensions; praxis' create_state_padded_shapes even drops
// the others from the shape.
//
// Source: google/praxis py_utils.py get_uneven_sharding_paddings, maybe_slice_uneven_sharding.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"

namespace shardsim {

using TensorShape = std::vector<std::int64_t>;

// One number for each pair of entry and dimension. Throws RuleError: KeyError for an axis that the
// mesh lacks, TypeError for UNCONSTRAINED.
[[nodiscard]] TensorShape uneven_paddings(const PartitionSpec& spec, const TensorShape& shape,
                                          const Mesh& mesh, const Place& place);
// The whole shape, dimensions without a padding as they are.
[[nodiscard]] TensorShape padded_shape(const TensorShape& shape, const TensorShape& paddings);
// The shape that praxis gives a padded train state: only the dimensions that have a padding.
[[nodiscard]] TensorShape padded_state_shape(const TensorShape& shape, const TensorShape& paddings);

// What is cut out of a padded array: from 0 in every dimension. Throws RuleError (TypeError), as
// jax.lax.slice does, when the ranks differ or `unpadded` does not fit.
[[nodiscard]] TensorShape sliced_shape(const TensorShape& padded, const TensorShape& unpadded,
                                       const Place& place);

}  // namespace shardsim
