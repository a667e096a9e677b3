// Shardings as Shardy writes them: for each dimension a list of axes or sub-axes.
//
//   mesh x=2, y=8, z=2; [["x"], ["y:(2)2"]] on [4, 8]: shard shape [2, 4]
//
// A sub-axis "y:(2)2" is the middle factor of y seen as [2, 2, 2] (plan/mesh.hpp). A last entry "?"
// leaves the dimension open to further sharding; it says nothing of how the tensor lies. Shards
// need not divide a dimension.
//
// Source: openxla/shardy docs/sharding_representation.md at a0277a8.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "sharding/sharding.hpp"

namespace shardsim {

// [["x"], ["y:(2)2", "?"], []]. Throws RuleError (ValueError) for what Shardy's invariants exclude:
//   - an axis that the mesh lacks; a sub-axis whose pre-size and size do not divide its axis
//   - a sub-axis of size 1, and one that is its whole axis
//   - axes that overlap, in one dimension or in two
//   - neighbours that are one axis or sub-axis: ["x:(1)2", "x:(2)4"] is "x" when x has 8 devices
[[nodiscard]] Sharding read_shardy_sharding(const JsonReader& dims, const Mesh& mesh);
// The same of axes that are listed as explicitly replicated, which are moreover in the order of the
// mesh and do not overlap those of `sharding`.
void check_replicated_axes(const JsonReader& axes, const Sharding& sharding, const Mesh& mesh);

}  // namespace shardsim
