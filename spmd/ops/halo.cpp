#include "spmd/ops/halo.hpp"

#include <cassert>

#include "base/index.hpp"
#include "spmd/ops/halo_exchange.hpp"
#include "spmd/ops/windowed.hpp"

namespace shardsim::spmd {
ValueId exchange_to(Context& context, ValueId shard, const Shape& shape, const Tiling& tiling,
                    std::int64_t dim, const Shape& starts, std::int64_t size) {
  const std::int64_t tile = context.builder().shape(shard)[at(dim)];
  const Halo halo{dim, tiling, linear(starts.size(), tile, 0) - starts,
                  starts - linear(starts.size(), tile, tile - size)};
  return exchange_halo_compact(context, shard, halo, shape[at(dim)], std::nullopt);
}

Sharded pad_split_dim(const Sharded& value, std::int64_t dim, std::int64_t padded) {
  Builder& builder = value.context->builder();
  const Shape none(value.shape.size(), 0);
  PaddingSizes sizes{none, none, none};
  sizes.high[at(dim)] = padded - builder.shape(value.value)[at(dim)] * value.tiles(dim);
  auto result = pad_tiles(value, sizes, builder.zero(builder.type(value.value)),
                          /*is_zero=*/true, value.tiling);
  assert(result && "a window of one element is never larger than what it reads");
  result->shape[at(dim)] = padded;
  return *result;
}

Sharded cut_split_dim(const Sharded& value, std::int64_t dim, std::int64_t limit) {
  Sharded padded = value;
  padded.shape[at(dim)] = value.context->builder().shape(value.value)[at(dim)] * value.tiles(dim);
  SliceBounds bounds{Shape(value.shape.size(), 0), padded.shape, Shape(value.shape.size(), 1)};
  bounds.limits[at(dim)] = round_up(limit, value.tiles(dim));
  auto result = slice_tiles(padded, bounds, value.tiling);
  assert(result && "a window of one element is never larger than what it reads");
  result->shape = value.shape;
  return *result;
}

}  // namespace shardsim::spmd
