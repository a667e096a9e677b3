// What gathers and scatters share when they are partitioned: groups of devices that have the same
// part of operand, indices and output, within which the rest is partitioned again.
#pragma once

#include <optional>

#include "spmd/ops/indexed_access.hpp"
#include "spmd/sharded.hpp"

namespace shardsim::spmd {

// A value as it is seen within the groups; `value` is resharded to that first.
[[nodiscard]] Sharded within_groups(Sharded& value, const GroupedTiling& grouped);
// Of a tensor of this shape the part of one group.
[[nodiscard]] Shape group_shape(const GroupedTiling& grouped, const Shape& shape);

// Operand and indices split alike over dimensions that they share. Nothing where neither is split,
// or one has too few replicas to follow the other.
struct SharedTilings {
  Tiling operand;
  Tiling indices;
};
[[nodiscard]] std::optional<SharedTilings> split_alike(const Tiling& operand, const Tiling& indices,
                                                       const SharedDims& shared,
                                                       const IndexedAccess& access);

// The output as the indices, or the operand's whole slices, suggest it.
[[nodiscard]] Tiling output_from_indices(const IndexedAccess& access, const Tiling& indices);
[[nodiscard]] Tiling indices_from_output(const IndexedAccess& access, const Tiling& output);
[[nodiscard]] std::optional<Tiling> output_from_operand(const IndexedAccess& access,
                                                        const Sharded& operand,
                                                        const Tiling& tiling, const Shape& slices);

// One scalar of i32 for each entry of index_map(), as a value of the indices' type.
[[nodiscard]] ValueId along_indices(const IndexedAccess& access, const Sharded& indices,
                                    const std::vector<ValueId>& scalars);
// The indices less where the operand's tiles begin in these of its dimensions.
[[nodiscard]] Sharded relative_to_tiles(const IndexedAccess& access, const Sharded& indices,
                                        const Sharded& operand, const Dims& dims);
[[nodiscard]] std::vector<ValueId> first_indices(const IndexedAccess& access,
                                                 const Sharded& operand, const Dims& dims);

}  // namespace shardsim::spmd
