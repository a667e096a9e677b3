// Which way from one tiling to another: the questions reshard() asks before it moves anything.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "spmd/tiling/tiling.hpp"

namespace shardsim::spmd {

// The same tiles on other devices: each device sends its tile to one other.
[[nodiscard]] bool can_permute(const Tiling& from, const Tiling& to);

// Pairs of dimensions that exchange their numbers of tiles, in order; nothing when the numbers of
// `to` are no rearrangement of those of `from`. Of partial tilings the replicas count as a
// dimension.
[[nodiscard]] std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>> all_to_all_dims(
    const Tiling& from, const Tiling& to);

// `to` splits every tile of the partial tiling further (or not at all): the tiling of the same
// tiles as `to` that a device reaches by slicing what it has. Nothing where tiles do not nest.
[[nodiscard]] std::optional<Tiling> sliced_tiling(const Tiling& partial, const Tiling& to);

// After the all-to-alls of these pairs.
[[nodiscard]] Tiling after_all_to_all(const Tiling& from, const Dims& sources, const Dims& targets);

// [.., X, .., Y, ..] <-> [.., X*Y, .., 1, ..] and the like: a dimension that is seen as two makes
// the change a simple one.
struct SplitTilings {
  Tiling from;
  Tiling to;
  std::int64_t dim = 0;  // of the major half
};
[[nodiscard]] std::optional<SplitTilings> split_to_match(const Shape& shape, const Tiling& from,
                                                         const Tiling& to);
// `from` with one dimension whole, so that as many replicas are there as `to` has.
[[nodiscard]] std::optional<Tiling> replicate_to_match(const Tiling& from, const Tiling& to);
// `from` with its replicas spread over a dimension that `to` splits.
[[nodiscard]] std::optional<Tiling> spread_to_match(const Tiling& from, const Tiling& to);

}  // namespace shardsim::spmd
