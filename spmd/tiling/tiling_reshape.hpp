// How a tiling goes through a reshape, and how tiles move between dimensions of one tensor.
//
//   [1024, 256] -> [128, 2048], tiles [4, 1]
//     1024 splits into 128 and 8, 8 joins 256: tiles [4, 1] of the result
//   [6, 4] -> [4, 6], tiles [6, 1]
//     2 tiles divide both 6 and 4: tiles [2, 1], 3 replicas each
//
// Source: openxla/xla xla/hlo/utils/hlo_sharding_util.h.
#pragma once

#include <functional>
#include <optional>

#include "spmd/tiling/tiling.hpp"

namespace shardsim::spmd {

// Of a reshape from one shape to another, whole dimensions at a time: only the major one of joined
// dimensions may be split, and tiles must divide what they split. What has no counterpart becomes
// replicas. Nothing when no tile survives, or a dimension is uneven.
[[nodiscard]] std::optional<Tiling> reshape_tiling(const Shape& from, const Shape& to,
                                                   const Tiling& tiling);
// The same, where only runs of dimensions go through: what each run alone gives, together.
[[nodiscard]] Tiling reshape_tiling_in_parts(const Shape& from, const Shape& to,
                                             const Tiling& tiling);

// The only dimension of more than one tile.
[[nodiscard]] std::optional<std::int64_t> only_tiled_dim(const Tiling& tiling);

// `tiling`, split as `other` is where it is whole, on devices that hold both tiles. Nothing when
// the two contradict each other, when `tiling` has no replicas to split, or when fewer than `least`
// tiles would come out.
[[nodiscard]] std::optional<Tiling> refine_tiling(const Tiling& tiling, const Tiling& other,
                                                  std::int64_t least);
// The same with more tiles than before; the tiling itself where that cannot be.
[[nodiscard]] Tiling refined_if_possible(const Tiling& tiling, const Tiling& other);
// What refines all of them, or the first.
[[nodiscard]] Tiling common_tiling(const std::vector<Tiling>& tilings);

// The tiles of dimension `source` go to `target`, as the minor part there.
[[nodiscard]] Tiling move_tiles(const Tiling& tiling, std::int64_t source, std::int64_t target);
// The first dimension among those that `may_take` them that the tiles of `source` divide evenly.
[[nodiscard]] std::optional<std::int64_t> dim_to_move_tiles_to(
    const Shape& shape, const Tiling& tiling, std::int64_t source,
    const std::function<bool(std::int64_t)>& may_take);

// Tiles of these dimensions in reverse order.
[[nodiscard]] Tiling reverse_tiling(const Tiling& tiling, const Dims& dims);

// Of a tensor of `rank` dimensions, whose dimension to[i] lies as from[i] of this one and which is
// whole in all others.
[[nodiscard]] Tiling tiling_along(const Tiling& tiling, const Dims& from, const Dims& to,
                                  std::size_t rank);

// `tiling` with the tiles of `dims` on the devices that hold them under `reference` in
// `reference_dims`.
[[nodiscard]] Tiling align_dims(const Tiling& tiling, const Dims& dims, const Tiling& reference,
                                const Dims& reference_dims);

// `tiling` in `groups` groups that its replicas tell apart; where there are too few of them, with
// dimensions made whole in the order of `may_replicate`, as far as needed; else replicated. The
// devices of the groups are of no account (align_groups() comes next). `devices` and `rank`: of the
// whole, for a replicated one.
[[nodiscard]] GroupedTiling group_replicas(const Tiling& tiling, std::int64_t groups,
                                           std::int64_t devices, std::size_t rank,
                                           const Dims& may_replicate);

}  // namespace shardsim::spmd
