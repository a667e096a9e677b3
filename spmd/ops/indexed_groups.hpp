// What gathers and scatters share when they are partitioned: groups of devices that have the same
// part of operand, indices and output, within which the rest is partitioned again.
//
//   gather table[V, D] by ids[B] -> [B, D], table split 4 ways over V, ids 2 ways over B
//     split_lookups   4 groups, one for each part of V; ids and output replicated over groups
//     split_indices   2 groups, one for each part of B; the table replicated over groups
#pragma once

#include <optional>

#include "spmd/ops/indexed_access.hpp"
#include "spmd/sharded.hpp"

namespace shardsim::spmd {

// A gather or scatter to be split. Of a scatter `output` are the updates, and all operands and all
// updates lie as the first of them.
struct IndexedTensors {
  const IndexedAccess& access;
  const Sharded& operand;
  const Tiling& indices;
  const Tiling& output;
  const Shape& slices;
};

// Groups of devices that each do a part of it.
struct IndexedGroups {
  GroupedTiling operand;
  GroupedTiling indices;
  GroupedTiling output;
  Shape slices;  // of one group's operand
};

// Over dimensions that operand and indices share: every device looks up only its own part. The
// tensors are resharded to these tilings first.
struct SharedSplit {
  Tiling operand;
  Tiling indices;
  Tiling output;
  IndexedGroups groups;
};
// Nothing where neither is split, or one has too few replicas to follow the other.
[[nodiscard]] std::optional<SharedSplit> split_shared(const IndexedTensors& given,
                                                      const SharedDims& shared);
// Over dimensions that slices take whole: operand and output lie alike.
[[nodiscard]] std::optional<IndexedGroups> split_whole_slices(const IndexedTensors& given);
// Over `dims` that are looked up: groups have different rows of the operand.
[[nodiscard]] IndexedGroups split_lookups(const IndexedTensors& given, const Dims& dims);
// Over the indices: every group has a part of them, and of the output. They are resharded to
// refined_indices() first, which follow the output where they can.
[[nodiscard]] Tiling refined_indices(const IndexedTensors& given);
[[nodiscard]] std::optional<IndexedGroups> split_indices(const IndexedTensors& given);

// A value as it is seen within the groups; `value` is resharded to that first.
[[nodiscard]] Sharded within_groups(Sharded& value, const GroupedTiling& grouped);
// Of a tensor of this shape the part of one group.
[[nodiscard]] Shape group_shape(const GroupedTiling& grouped, const Shape& shape);

// The indices as the output suggests them.
[[nodiscard]] Tiling indices_from_output(const IndexedAccess& access, const Tiling& output);

// One scalar of i32 for each entry of index_map(), as a value of the indices' type.
[[nodiscard]] ValueId along_indices(const IndexedAccess& access, const Sharded& indices,
                                    const std::vector<ValueId>& scalars);
// The indices less where the operand's tiles begin in these of its dimensions.
[[nodiscard]] Sharded relative_to_tiles(const IndexedAccess& access, const Sharded& indices,
                                        const Sharded& operand, const Dims& dims);
[[nodiscard]] std::vector<ValueId> first_indices(const IndexedAccess& access,
                                                 const Sharded& operand, const Dims& dims);

}  // namespace shardsim::spmd
