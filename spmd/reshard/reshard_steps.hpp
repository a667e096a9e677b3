// The steps that resharding is made of, each one kind of movement; reshard.cpp chooses among them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "spmd/sharded.hpp"

namespace shardsim::spmd {

using DimPairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Sizes rounded up to multiples of the tiles.
[[nodiscard]] Shape padded_shape(const Shape& shape, const Tiling& tiling);
// With zeros at the end of dimensions, and without what is beyond `to`.
[[nodiscard]] ValueId pad_high(Builder& builder, ValueId value, const Shape& to);
[[nodiscard]] ValueId cut_to(Builder& builder, ValueId value, const Shape& to);

// The same tiles on other devices.
[[nodiscard]] Sharded permute(const Sharded& from, const Tiling& to);
// All-to-alls over pairs of dimensions (all_to_all_dims), then a permute where devices differ.
[[nodiscard]] Sharded exchange(const Sharded& from, const Tiling& to, const DimPairs& pairs);
// Each device keeps a part of the tile that it shares with others.
[[nodiscard]] std::optional<Sharded> slice_replicas(const Sharded& from, const Tiling& to);
// Tiles that belong to one tile of `to` are gathered.
[[nodiscard]] std::optional<Sharded> gather_to_partial(const Sharded& from, const Tiling& to);
// The whole of `dims` on every device of the value's context.
[[nodiscard]] ValueId replicate_partial(const Sharded& from, const Dims& dims);

// The same scalar in every place: nothing has to move.
[[nodiscard]] bool is_splat(const Sharded& value);
// For later reshardings of either value.
void remember(const Sharded& from, const Sharded& to);

// As XLA goes; with `may_replicate` false the value stays as it is where XLA would replicate it.
[[nodiscard]] Sharded reshard_like_xla(const Sharded& from, const Tiling& to, bool may_replicate);
// The same unless a way that sends less is found (reshard_search.hpp).
[[nodiscard]] Sharded reshard_cheaply(const Sharded& from, const Tiling& to);

}  // namespace shardsim::spmd
