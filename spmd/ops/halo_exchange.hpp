// Sends edges of tiles to the neighbours along one dimension, so that every device has more (or
// less) of the dimension than its own tile.
//
//   8 elements in 4 tiles, each with 1 element of its left neighbour (left {0,1,1,1}, right all 0):
//     01|23|45|67  ->  one permute i -> i+1 of a slice of 1 element  ->  _01|123|345|567
//
// The sizes of halos may differ by tile; the same amount is moved for all, the largest. A negative
// size means that a tile needs less than what it has. Source: openxla/xla
// xla/service/spmd/spmd_partitioner_util.cc (ExchangeHalo, ExchangeHaloCompact).
#pragma once

#include <functional>
#include <optional>

#include "spmd/sharded.hpp"

namespace shardsim::spmd {

// One number per tile of a dimension, in their order.
using PerTile = std::vector<std::int64_t>;
// (multiplier * tile + offset) / divisor, towards zero, for tiles 0..count-1.
[[nodiscard]] PerTile linear(std::size_t count, std::int64_t multiplier, std::int64_t offset,
                             std::int64_t divisor = 1);
[[nodiscard]] PerTile operator-(const PerTile& a, const PerTile& b);
[[nodiscard]] std::int64_t max_in(const PerTile& values, std::int64_t first, std::int64_t limit);
// A scalar that differs by device: values[tile of the device in `dim`]. A constant where all are
// equal.
[[nodiscard]] ValueId scalar_by_tile(Context& context, const Tiling& tiling, std::int64_t dim,
                                     const PerTile& values);

struct Halo {
  std::int64_t dim = 0;
  Tiling tiling;  // tiles(dim) of them take part
  PerTile left;   // elements before the own tile
  PerTile right;  // elements after it
};

// The largest halos around the own tile. Nothing where whole tiles from afar would be needed so
// that gathering them all is cheaper, or where no element is left.
[[nodiscard]] std::optional<ValueId> exchange_halo(Context& context, ValueId shard,
                                                   const Halo& halo);

// The same for halos that are large for few tiles only: permutes between exactly those tiles that
// need something of each other. Every tile gets the largest left + own + right; `size` is that of
// the whole dimension. What lies outside of it is `padding`, or undefined.
[[nodiscard]] ValueId exchange_halo_compact(Context& context, ValueId shard, const Halo& halo,
                                            std::int64_t size, std::optional<ValueId> padding);

// exchange_halo() and what follows: every tile of the result has exactly `tile_size` elements from
// its own `start` on.
struct HaloCut {
  std::int64_t size = 0;          // of the whole dimension
  std::int64_t left_padding = 0;  // in front of it
  std::int64_t padded_size = 0;   // with padding on both sides
  std::int64_t tile_size = 0;
  PerTile start;  // on the padded dimension
  // Of every device the number of its tile among those that take part: tile ordinal[i] of
  // `whole`'s tile i.
  Tiling whole;
  PerTile ordinal;
  ValueId padding = -1;
  bool mask = true;  // put `padding` where there is no data
  bool mask_when_compact = false;
};
[[nodiscard]] std::optional<ValueId> exchange_halo_and_cut(Context& context, ValueId shard,
                                                           const Halo& halo, const HaloCut& cut);

}  // namespace shardsim::spmd
