// The two passes of jax's mesh_utils.create_device_mesh (jax-ml/jax jax/_src/mesh_utils.py
// @cec06d1).
//
// Both answer a matrix: `assignment[p][l]` is how much of physical dimension p logical axis l
// takes; row p multiplies to the size of p, column l to the size of l. Logical axes are placed from
// the last, the most communication-intensive, to the first.
//
// Whole axes: a logical axis takes the first set of free dimensions, larger sets before smaller and
// in lexicographic order among equals, of three at most, whose sizes multiply to its own. The pass
// is greedy and can fail where a fit exists: on 2x2x4, logical 2, 2, 4 fails because 4 takes x and
// y.
//
// Split axes: a logical axis takes the parts z, each dividing what is left of its dimension and
// together multiplying to its size, that are greatest by, in order,
//   1. the product of the z that are whole dimensions
//   2. the number of whole dimensions of more than one device
//   3. the product of the z on dimensions that later axes use already
//   4. z itself, in lexicographic order: x before y before z
// (3 is as jax's code does it; the comment there says the opposite.)
//
// Example: 4x4x4 with logical 2, 1, 32 has no whole fit; split, 32 takes x, y and 2 of z, and the
// axis of 2 takes the other 2 of z: {{1,1,4}, {1,1,4}, {2,1,2}}.
//
// Not here: the fixed orders that jax has for slices of 4, 8 and 16 devices of some chips,
// contiguous_submeshes, and jax.make_mesh's refusal to split on chips other than v5e.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace shardsim {

using MeshAssignment = std::vector<std::vector<std::int64_t>>;

// Nothing when the pass finds no fit.
[[nodiscard]] std::optional<MeshAssignment> assign_whole_axes(
    const std::vector<std::int64_t>& physical, const std::vector<std::int64_t>& logical);
// Finds a fit whenever both multiply to the same number, which is required.
[[nodiscard]] MeshAssignment assign_split_axes(const std::vector<std::int64_t>& physical,
                                               const std::vector<std::int64_t>& logical);

}  // namespace shardsim
