// Data that a device needs of its neighbours' tiles: slices, paddings and windows along dimensions
// that are split.
#pragma once

#include <optional>

#include "spmd/sharded.hpp"

namespace shardsim::spmd {

// Dimension `dim` of a tensor that lies in tiles of `tiling` is to be cut at other places: device
// number i of the dimension gets the elements from i * `step_of(i)` on. What reshard() needs when
// padded sizes of two tilings differ; nothing is masked.
//   starts[i]  first element that tile i shall have; `size` elements each
[[nodiscard]] ValueId exchange_to(Context& context, ValueId shard, const Shape& shape,
                                  const Tiling& tiling, std::int64_t dim, const Shape& starts,
                                  std::int64_t size);

// `value`, which is split over `dim` as its tiling says, padded to `padded` elements in that
// dimension and split evenly again.
[[nodiscard]] Sharded pad_split_dim(const Sharded& value, std::int64_t dim, std::int64_t padded);
// The inverse: the first `limit` elements.
[[nodiscard]] Sharded cut_split_dim(const Sharded& value, std::int64_t dim, std::int64_t limit);

}  // namespace shardsim::spmd
