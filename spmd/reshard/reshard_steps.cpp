#include "spmd/reshard/reshard_steps.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "spmd/ops/halo.hpp"
#include "spmd/reshard/reshard_choice.hpp"

namespace shardsim::spmd {
Shape padded_shape(const Shape& shape, const Tiling& tiling) {
  Shape result = shape;
  for (std::size_t i = 0; i < tiling.tiles().size(); ++i) {
    result[i] = round_up(shape[i], tiling.tiles()[i]);
  }
  return result;
}

ValueId pad_high(Builder& builder, ValueId value, const Shape& to) {
  const Shape& from = builder.shape(value);
  if (from == to) return value;
  const Shape none(from.size(), 0);
  Shape high(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) high[i] = to[i] - from[i];
  return builder.pad(value, builder.zero(builder.type(value)), none, high, none);
}

ValueId cut_to(Builder& builder, ValueId value, const Shape& to) {
  const Shape& from = builder.shape(value);
  if (from == to) return value;
  return builder.slice(value, Shape(to.size(), 0), to, Shape(to.size(), 1));
}

// Each device keeps a part of the tile that it shares with others.
std::optional<Sharded> slice_replicas(const Sharded& from, const Tiling& to) {
  const std::optional<Tiling> sliced = sliced_tiling(from.tiling, to);
  if (!sliced) return {};
  Context& context = *from.context;
  Builder& builder = context.builder();
  ValueId value = from.value;
  const Shape to_shape = padded_shape(from.shape, *sliced);
  Shape local = builder.shape(value);
  for (std::size_t i = 0; i < from.shape.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (sliced->tiles(dim) == from.tiles(dim)) continue;
    const std::int64_t wanted = to_shape[i] / from.tiles(dim);
    if (local[i] >= wanted) continue;
    if (from.tiles(dim) > 1) {
      Shape starts;
      for (std::int64_t tile = 0; tile < from.tiles(dim); ++tile) starts.push_back(tile * wanted);
      value = exchange_to(context, value, from.shape, from.tiling, dim, starts, wanted);
    }
    local[i] = wanted;
  }
  value = pad_high(builder, value, local);
  const std::vector<ValueId> starts = tile_offsets(context, to_shape, *sliced);
  const std::vector<ValueId> old_starts = tile_offsets(context, to_shape, from.tiling);
  std::vector<ValueId> offsets;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    offsets.push_back(builder.binary("stablehlo.subtract", starts[i], old_starts[i]));
  }
  const ValueId slice = builder.dynamic_slice(value, offsets, shard_shape(from.shape, *sliced));
  const Sharded result{slice, from.shape, *sliced, from.context};
  return can_permute(*sliced, to) ? permute(result, to) : result;
}

// The whole of `dims` on every device, from a value whose tiling is that of its context.
ValueId replicate_partial(const Sharded& from, const Dims& dims) {
  Context& context = *from.context;
  Builder& builder = context.builder();
  const Shape shard = builder.shape(from.value);
  Shape whole = shard;
  Shape gathered = shard;
  Dims broadcast;
  Dims summed;
  Dims gather;
  for (const std::int64_t dim : dims) {
    const std::int64_t tiles = from.tiles(dim);
    if (tiles == 1) continue;
    whole[at(dim)] = from.shape[at(dim)];
    if (from.shape[at(dim)] == shard[at(dim)]) {
      broadcast.push_back(dim);
    } else if (from.shape[at(dim)] <= tiles / 2) {
      summed.push_back(dim);
    } else {
      gathered[at(dim)] = from.shape[at(dim)];
      gather.push_back(dim);
    }
  }
  ValueId value = from.value;
  if (!broadcast.empty()) {
    // All of it is on one device of each group: the others add zeros.
    DeviceGroups groups = groups_along(from.tiling, broadcast);
    const TensorType scalar{true, {}, "i1", DType::boolean, ""};
    std::vector<std::int64_t> owners(at(context.devices()), 0);
    for (const std::vector<int>& group : groups) owners[at(group.front())] = 1;
    const ValueId owns = scalar_by_device(context, owners, scalar);
    const ValueId zeros = builder.broadcast_scalar(builder.zero(builder.type(value)), shard);
    value = builder.select(builder.broadcast_scalar(owns, shard), value, zeros);
    // One group of all devices counts in their order.
    if (groups.size() == 1) std::sort(groups.front().begin(), groups.front().end());
    value = all_reduce(context, value, groups, "add");
  }
  if (gather.empty() && summed.empty()) return value;
  value = cut_to(builder, all_gather_shards(context, value, from.tiling, gather), gathered);
  if (summed.empty()) return value;
  // Fewer elements than half the tiles: each device writes what it has into zeros, and all add.
  Dims skipped;
  for (std::size_t i = 0; i < from.shape.size(); ++i) {
    if (!holds(summed, static_cast<std::int64_t>(i))) {
      skipped.push_back(static_cast<std::int64_t>(i));
    }
  }
  value = pad_with_zero({value, whole, from.tiling, from.context}, {}, skipped).value;
  const ValueId zeros = builder.broadcast_scalar(builder.zero(builder.type(value)), whole);
  const std::vector<ValueId> offsets =
      tile_offsets(context, whole, replicate_all_but(from.tiling, summed), summed);
  value = builder.dynamic_update_slice(zeros, value, offsets);
  return all_reduce_along(context, value, from.tiling, summed, "add");
}

// Tiles that belong to one tile of `to` are gathered.
std::optional<Sharded> gather_to_partial(const Sharded& from, const Tiling& to) {
  const std::optional<Tiling> start = sliced_tiling(to, from.tiling);
  if (!start) return {};
  Sharded value = can_permute(from.tiling, *start) ? permute(from, *start) : from;
  Context& context = *from.context;
  Builder& builder = context.builder();
  Dims dims;
  Shape factors;
  for (std::size_t i = 0; i < from.shape.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    const std::int64_t factor = start->tiles(dim) / to.tiles(dim);
    if (factor == 1) continue;
    dims.push_back(dim);
    factors.push_back(factor);
  }
  // Where the gathered tiles would not fit what the new tile holds, they are cut anew first.
  const Shape from_shape = padded_shape(from.shape, *start);
  const Shape to_shape = padded_shape(from.shape, to);
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const std::int64_t dim = dims[k];
    const std::int64_t per_tile = from_shape[at(dim)] / to.tiles(dim);
    const std::int64_t wanted = to_shape[at(dim)] / to.tiles(dim);
    if (per_tile <= wanted || to.tiles(dim) == 1) continue;
    const std::int64_t size = builder.shape(value.value)[at(dim)];
    Shape starts;
    for (std::int64_t tile = 0; tile < start->tiles(dim); ++tile) {
      starts.push_back(tile * size - (per_tile - wanted) * (tile / factors[k]));
    }
    value.value = exchange_to(context, value.value, from.shape, *start, dim, starts, size);
  }
  // The groups are those of the target's tiles; within one, only what it gathers is split.
  Shape inner(from.shape.size(), 1);
  for (std::size_t k = 0; k < dims.size(); ++k) inner[at(dims[k])] = factors[k];
  Dims outer_dims;
  Shape outer_sizes;
  const Shape extents = start->extents();
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t sizes = i < inner.size() ? extents[i] / inner[i] : extents[i];
    if (sizes == 1) continue;
    outer_dims.push_back(static_cast<std::int64_t>(i));
    outer_sizes.push_back(sizes);
  }
  const GroupedTiling grouped = group_by(*start, outer_dims, outer_sizes);
  const Sharded local{value.value, shard_shape(from.shape, to), grouped.tiling,
                      &context.grouped(grouped.groups)};
  return Sharded{replicate_partial(local, dims), from.shape, to, from.context};
}

Sharded pad_with(const Sharded& value, ValueId padding, const Dims& left_padded,
                 const Dims& skipped) {
  if (value.tiling.is_replicated() || divides_evenly(value.shape, value.tiling)) return value;
  Context& context = *value.context;
  Builder& builder = context.builder();
  const Shape local = builder.shape(value.value);
  const TensorType index{true, local, "i32", DType::i32, ""};
  const std::vector<ValueId> offsets = tile_offsets(context, value.shape, value.tiling);
  ValueId mask = -1;
  for (std::size_t i = 0; i < local.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (value.shape[i] % value.tiles(dim) == 0 || holds(skipped, dim)) continue;
    const bool left = holds(left_padded, dim);
    const std::int64_t limit = left ? local[i] * value.tiles(dim) - value.shape[i] : value.shape[i];
    const ValueId place = builder.binary("stablehlo.add", builder.iota(index, dim),
                                         builder.broadcast_scalar(offsets[i], local));
    const ValueId bound = builder.broadcast_scalar(
        builder.constant(std::to_string(limit), {true, {}, "i32", DType::i32, ""}), local);
    const ValueId valid = builder.compare(left ? "GE" : "LT", place, bound);
    mask = mask < 0 ? valid : builder.binary("stablehlo.and", mask, valid);
  }
  if (mask < 0) return value;
  Sharded result = value;
  result.value = builder.select(mask, value.value, builder.broadcast_scalar(padding, local));
  return result;
}

Sharded pad_with_zero(const Sharded& value, const Dims& left_padded, const Dims& skipped) {
  if (value.tiling.is_replicated() || divides_evenly(value.shape, value.tiling)) return value;
  Builder& builder = value.context->builder();
  return pad_with(value, builder.zero(builder.type(value.value)), left_padded, skipped);
}

}  // namespace shardsim::spmd
