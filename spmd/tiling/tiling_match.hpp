// Questions that dots ask about pairs of tilings: do they fit over the dimensions that operands and
// result share, and can the devices of one be put into the groups of another?
//
//   lhs [4,2] over (m, k), rhs [2,4] over (k, n), contracting k
//     match_dims(lhs, {-1, 0}, {1, -1})   nothing: m is split and no dimension of rhs
//     match_dims([1,8], {-1, 0}, {1, -1}) [8,1]
//
// Source: openxla/xla xla/hlo/utils/hlo_sharding_util.h, xla/service/spmd/spmd_partitioner_util.h.
#pragma once

#include <optional>

#include "spmd/tiling/tiling.hpp"

namespace shardsim::spmd {

// The tiling of another tensor, whose dimension i lies as dimension from_of[i] of this one (-1: new
// and whole). `to_of` is the inverse; nothing when a dimension that has no counterpart is split.
[[nodiscard]] std::optional<Tiling> match_dims(const Tiling& tiling, const Dims& to_of,
                                               const Dims& from_of);

// Every tile of `finer` lies within the tile of `coarser` that the same device has.
[[nodiscard]] bool is_finer_or_equal(const Shape& shape, const Tiling& finer,
                                     const Tiling& coarser);

// Both at once: dimensions split as in one or the other, on devices that hold both tiles. Nothing
// when they contradict each other, or when the result has fewer than `least` tiles.
[[nodiscard]] std::optional<Tiling> merge_tilings(const Tiling& a, const Tiling& b,
                                                  std::int64_t least);

// Dimensions (the replicas too, by their number) that together tell exactly these groups apart; the
// order of groups does not count.
[[nodiscard]] std::optional<Dims> dims_of_groups(const Tiling& tiling, const DeviceGroups& groups);

// `tiling` grouped by a part of its replicas into exactly these groups, where each group has all
// tiles and all have them in the same places.
[[nodiscard]] std::optional<GroupedTiling> group_replicas_into(const Tiling& tiling,
                                                               const DeviceGroups& groups);

// Group for group the same devices, in whatever order within a group.
[[nodiscard]] bool same_groups(const DeviceGroups& a, const DeviceGroups& b);

// `tiling` with other numbers of tiles in some dimensions and the devices in the same order; the
// product stays. `extents` are those of extents().
[[nodiscard]] Tiling with_extents(const Tiling& tiling, const Shape& extents);

// The last tile of each of `dims` where the first was, and so on.
[[nodiscard]] Tiling reversed(const Tiling& tiling, const Dims& dims);

}  // namespace shardsim::spmd
