#include "base/index.hpp"
#include "spmd/reshard/reshard_choice.hpp"
#include "spmd/reshard/reshard_steps.hpp"

namespace shardsim::spmd {
namespace {

// Tiled [.., n, ..] against partial [1, .., n replicas]: by way of the tiling in which the
// dimension with as many tiles is whole.
std::optional<Sharded> exchange_with_replicas(const Sharded& from, const Tiling& to) {
  const bool from_partial = from.tiling.is_partial();
  const Tiling& partial = from_partial ? from.tiling : to;
  const Tiling& tiled = from_partial ? to : from.tiling;
  if (!partial.is_partial() || tiled.is_partial() || tiled.is_replicated()) return {};
  const Shape shifted = partial.extents();
  if (tiled.tiles().size() + 1 != shifted.size() || shifted.front() != 1) return {};
  std::int64_t whole_dim = -1;
  for (std::size_t i = tiled.tiles().size(); i-- > 0;) {
    if (tiled.tiles()[i] > 1 && whole_dim == -1) {
      if (tiled.tiles()[i] != partial.replicas()) return {};
      whole_dim = static_cast<std::int64_t>(i);
    }
    if (tiled.tiles()[i] != shifted[i + 1]) return {};
  }
  if (whole_dim == -1 || partial.devices() != tiled.devices()) return {};
  Shape tiles = tiled.tiles();
  tiles[at(whole_dim)] = 1;
  const Tiling between = Tiling::tiled(tiles, tiled.devices());
  if (from_partial) {
    const auto pairs = all_to_all_dims(from.tiling, between);
    if (!pairs) return {};
    return reshard(exchange(from, between, *pairs), to);
  }
  const Sharded halfway = reshard(from, between);
  const auto pairs = all_to_all_dims(halfway.tiling, to);
  if (!pairs) return {};
  return exchange(halfway, to, *pairs);
}

// A tiling that is seen with one dimension taken apart.
Sharded split_value(const Sharded& value, std::int64_t dim, std::int64_t size,
                    const Tiling& tiling) {
  Builder& builder = value.context->builder();
  Shape local = builder.shape(value.value);
  local.insert(local.begin() + dim + 1, size);
  local[at(dim)] /= size;
  Shape shape = value.shape;
  const std::int64_t minor = size * tiling.tiles(dim + 1);
  shape.insert(shape.begin() + dim + 1, minor);
  shape[at(dim)] /= minor;
  return {builder.reshape(value.value, local), shape, tiling, value.context};
}

Sharded merge_value(const Sharded& value, std::int64_t dim) {
  Builder& builder = value.context->builder();
  Shape local = builder.shape(value.value);
  local[at(dim)] *= local[at(dim + 1)];
  local.erase(local.begin() + dim + 1);
  Shape shape = value.shape;
  shape[at(dim)] *= shape[at(dim + 1)];
  shape.erase(shape.begin() + dim + 1);
  return {builder.reshape(value.value, local), shape, merge_dim(value.tiling, dim), value.context};
}

std::optional<Sharded> reshard_in_steps(const Sharded& from, const Tiling& to) {
  if (const auto split = split_to_match(from.shape, from.tiling, to)) {
    const std::int64_t size = from.context->builder().shape(from.value)[at(split->dim)];
    const Sharded apart = split_value(from, split->dim, size, split->from);
    const Sharded moved = reshard_like_xla(apart, split->to, false);
    if (moved.tiling != split->to) return {};
    Sharded merged = merge_value(moved, split->dim);
    if (merged.tiling != to) {
      merged = reshard_like_xla(merged, to, false);
      if (merged.tiling != to) return {};
    }
    merged.shape = from.shape;
    return merged;
  }
  std::optional<Tiling> between = replicate_to_match(from.tiling, to);
  if (!between) between = spread_to_match(from.tiling, to);
  if (!between) return {};
  const Sharded moved = reshard_like_xla(reshard(from, *between), to, false);
  if (moved.tiling != to) return {};
  return moved;
}

// Dimensions with equal numbers of tiles stay: the rest moves within groups of their tiles.
std::optional<Sharded> reshard_within_equal_dims(const Sharded& from, const Tiling& to) {
  Dims equal;
  for (std::size_t i = 0; i < from.shape.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (from.tiles(dim) != 1 && from.tiles(dim) == to.tiles(dim)) equal.push_back(dim);
  }
  if (equal.empty()) return {};
  Builder& builder = from.context->builder();
  const GroupedTiling grouped = group_by(from.tiling, equal);
  GroupedTiling target = group_by(to, equal);
  target = align_groups(std::move(target), grouped);
  Shape shape = from.shape;
  for (const std::int64_t dim : equal) shape[at(dim)] = builder.shape(from.value)[at(dim)];
  const Sharded inner{builder.copy(from.value), shape, grouped.tiling,
                      &from.context->grouped(grouped.groups)};
  const Sharded moved = reshard_like_xla(inner, target.tiling, true);
  const Sharded outer{moved.value, from.shape, ungroup(target), from.context};
  return reshard_like_xla(outer, to, true);
}

Sharded slice_whole(const Sharded& from, const Tiling& to) {
  Context& context = *from.context;
  Builder& builder = context.builder();
  const ValueId padded = pad_high(builder, from.value, padded_shape(from.shape, to));
  const ValueId slice = builder.dynamic_slice(padded, tile_offsets(context, from.shape, to),
                                              shard_shape(from.shape, to));
  return {slice, from.shape, to, from.context};
}

}  // namespace

bool is_splat(const Sharded& value) {
  const Builder& builder = value.context->builder();
  const Op* op = builder.definition(value.value);
  return op != nullptr && op->name == "stablehlo.broadcast_in_dim" &&
         builder.shape(op->operands.front()).empty();
}

void remember(const Sharded& from, const Sharded& to) {
  from.context->cache[from.value].insert_or_assign(to.tiling, to);
  to.context->cache[to.value].insert_or_assign(from.tiling, from);
}

Sharded reshard_like_xla(const Sharded& from, const Tiling& to, bool may_replicate) {
  if (from.tiling == to) return from;
  Builder& builder = from.context->builder();
  if (is_splat(from)) {
    const ValueId scalar = builder.definition(from.value)->operands.front();
    return {builder.broadcast_scalar(scalar, shard_shape(from.shape, to)), from.shape, to,
            from.context};
  }
  if (can_permute(from.tiling, to)) return permute(from, to);
  if (const auto pairs = all_to_all_dims(from.tiling, to)) return exchange(from, to, *pairs);
  if (!to.is_replicated() && from.tiling.is_partial()) {
    if (auto done = slice_replicas(from, to)) return *done;
    if (auto done = exchange_with_replicas(from, to)) return *done;
  }
  if (!from.tiling.is_replicated() && to.is_partial()) {
    if (auto done = gather_to_partial(from, to)) return *done;
    if (auto done = exchange_with_replicas(from, to)) return *done;
  }
  if (from.tiling.is_replicated()) return slice_whole(from, to);
  if (!to.is_replicated()) {
    if (auto done = reshard_in_steps(from, to)) return *done;
    if (auto done = reshard_within_equal_dims(from, to)) return *done;
    if (!may_replicate) return from;
  }
  return reshard(replicate(from), to);
}

Sharded reshard(const Sharded& from, const Tiling& target) {
  if (from.tiling == target) return from;
  const auto& known = from.context->cache[from.value];
  if (const auto found = known.find(target); found != known.end()) return found->second;
  Sharded result = reshard_cheaply(from, target);
  remember(from, result);
  return result;
}

Sharded replicate(const Sharded& from) {
  if (from.tiling.is_replicated()) return from;
  const auto& known = from.context->cache[from.value];
  if (const auto found = known.find(Tiling()); found != known.end()) return found->second;
  Sharded result{replicate_partial(from, iota_dims(from.shape.size())), from.shape, Tiling(),
                 from.context};
  remember(from, result);
  return result;
}

}  // namespace shardsim::spmd
