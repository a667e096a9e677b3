#include <algorithm>
#include <cassert>

#include "spmd/halo.hpp"
#include "spmd/reshard_choice.hpp"
#include "spmd/reshard_search.hpp"
#include "spmd/sharded.hpp"

namespace shardsim::spmd {
namespace {

using DimPairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

Sharded try_reshard(const Sharded& from, const Tiling& to, bool may_replicate);

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

// The same splat on every device: nothing has to move.
bool is_splat(const Builder& builder, ValueId value) {
  const Op* op = builder.definition(value);
  if (op == nullptr) return false;
  if (op->name != "stablehlo.broadcast_in_dim") return false;
  return builder.shape(op->operands.front()).empty();
}

Sharded permute(const Sharded& from, const Tiling& to) {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < to.devices().size(); ++i) {
    pairs.emplace_back(from.tiling.devices()[i], to.devices()[i]);
  }
  const ValueId moved = collective_permute(*from.context, from.value, pairs);
  return {moved, from.shape, to, from.context};
}

// One dimension of tiles against another: split the target dimension of every tile over the group,
// and put what arrives together along the source dimension.
Sharded exchange_dims(const Sharded& from, const Tiling& to, std::int64_t source,
                      std::int64_t target) {
  Builder& builder = from.context->builder();
  const Tiling moved = after_all_to_all(from.tiling, {source}, {target});
  const std::int64_t group = from.tiles(source) / from.tiles(target);
  Sharded padded = from;
  const std::int64_t even = round_up(from.shape[at(target)], moved.tiles(target));
  if (even != builder.shape(from.value)[at(target)] * from.tiles(target)) {
    padded = pad_split_dim(from, target, even);
  }
  const Shape local = builder.shape(padded.value);
  Shape apart = local;
  apart[at(target)] /= group;
  apart.insert(apart.begin() + target, group);
  const ValueId split = builder.reshape(padded.value, apart);
  const Tiling seen = split_dim(moved, target, moved.tiles(target) / group);
  const ValueId exchanged =
      all_to_all(*from.context, split, target, groups_along(seen, {target + 1}));
  // The split dimension goes in front of the source dimension, and becomes one with it.
  const std::int64_t new_source = target < source ? source + 1 : source;
  Dims order;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(apart.size()); ++i) {
    if (i == target) continue;
    if (i == new_source) order.push_back(target);
    order.push_back(i);
  }
  Shape joined = local;
  joined[at(target)] /= group;
  joined[at(source)] *= group;
  const ValueId result = builder.reshape(builder.transpose(exchanged, order), joined);
  Sharded exchanged_value{result, from.shape, moved, from.context};
  const std::int64_t wanted = ceil_div(from.shape[at(source)], moved.tiles(source));
  if (joined[at(source)] != wanted) {
    exchanged_value = cut_split_dim(exchanged_value, source, from.shape[at(source)]);
  }
  return exchanged_value.tiling == to ? exchanged_value : exchanged_value;
}

// Several exchanges at once, where all of them are even: one all-to-all over all the groups.
Sharded exchange_many(const Sharded& from, const Dims& sources, const Dims& targets) {
  Builder& builder = from.context->builder();
  const Tiling moved = after_all_to_all(from.tiling, sources, targets);
  const Shape local = builder.shape(from.value);
  Shape apart;
  Dims front;
  std::int64_t together = 1;
  for (std::size_t i = 0; i < local.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    std::int64_t group = 1;
    bool is_target = false;
    for (std::size_t k = 0; k < targets.size(); ++k) {
      if (targets[k] != dim) continue;
      group = from.tiles(sources[k]) / from.tiles(dim);
      is_target = true;
    }
    if (is_target) {
      front.push_back(static_cast<std::int64_t>(apart.size()));
      apart.push_back(group);
      together *= group;
    }
    apart.push_back(local[i] / group);
  }
  Dims order = front;
  for (std::size_t i = 0; i < apart.size(); ++i) {
    if (!holds(front, static_cast<std::int64_t>(i))) order.push_back(static_cast<std::int64_t>(i));
  }
  const ValueId sorted = builder.transpose(builder.reshape(from.value, apart), order);
  const Shape sorted_shape = builder.shape(sorted);
  Shape merged(sorted_shape.begin() + static_cast<std::ptrdiff_t>(front.size()),
               sorted_shape.end());
  merged.insert(merged.begin(), together);
  // Groups: the parts of the target dimensions that came from elsewhere, in the order of targets.
  Tiling seen = moved;
  Dims grouped;
  std::int64_t added = 0;
  for (std::size_t i = 0; i < local.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (!holds(targets, dim)) continue;
    seen = split_dim(seen, dim + added, from.tiles(dim));
    ++added;
    grouped.push_back(dim + added);
  }
  const ValueId exchanged =
      all_to_all(*from.context, builder.reshape(sorted, merged), 0, groups_along(seen, grouped));
  const ValueId back = builder.reshape(exchanged, sorted_shape);
  Dims final_order;
  for (std::size_t i = 0; i < local.size(); ++i) {
    for (std::size_t k = 0; k < sources.size(); ++k) {
      if (sources[k] == static_cast<std::int64_t>(i)) {
        final_order.push_back(static_cast<std::int64_t>(k));
      }
    }
    final_order.push_back(static_cast<std::int64_t>(i + front.size()));
  }
  const ValueId result =
      builder.reshape(builder.transpose(back, final_order), shard_shape(from.shape, moved));
  return {result, from.shape, moved, from.context};
}

Sharded exchange_one_by_one(Sharded value, const Tiling& to, const DimPairs& pairs) {
  for (const auto& [source, target] : pairs) {
    if (value.tiling == to) return value;
    value = exchange_dims(value, to, source, target);
  }
  return value.tiling == to ? value : permute(value, to);
}

Sharded exchange(const Sharded& from, const Tiling& to, DimPairs pairs) {
  DimPairs sorted = pairs;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  Dims sources;
  Dims targets;
  DimPairs others;
  Dims seen;
  for (const auto& [source, target] : sorted) {
    const auto rank = static_cast<std::int64_t>(from.shape.size());
    const bool even = source < rank && target < rank &&
                      from.shape[at(source)] % from.tiles(source) == 0 &&
                      from.shape[at(target)] % to.tiles(target) == 0;
    if (even && !holds(seen, source) && !holds(seen, target)) {
      sources.push_back(source);
      targets.push_back(target);
      seen.push_back(source);
      seen.push_back(target);
    } else {
      others.emplace_back(source, target);
    }
  }
  if (sources.size() < 2) return exchange_one_by_one(from, to, pairs);
  return exchange_one_by_one(exchange_many(from, sources, targets), to, others);
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
    const DeviceGroups groups = groups_along(from.tiling, broadcast);
    const TensorType scalar{true, {}, "i1", DType::boolean, ""};
    std::vector<std::int64_t> owners(at(context.devices()), 0);
    for (const std::vector<int>& group : groups) owners[at(group.front())] = 1;
    const ValueId owns =
        builder.add("spmd.offset", {}, scalar, {{"by_device", integers_attribute(owners)}});
    const ValueId zeros = builder.broadcast_scalar(builder.zero(builder.type(value)), shard);
    value = builder.select(builder.broadcast_scalar(owns, shard), value, zeros);
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
    const Sharded moved = try_reshard(apart, split->to, false);
    if (moved.tiling != split->to) return {};
    Sharded merged = merge_value(moved, split->dim);
    if (merged.tiling != to) {
      merged = try_reshard(merged, to, false);
      if (merged.tiling != to) return {};
    }
    merged.shape = from.shape;
    return merged;
  }
  std::optional<Tiling> between = replicate_to_match(from.tiling, to);
  if (!between) between = spread_to_match(from.tiling, to);
  if (!between) return {};
  const Sharded moved = try_reshard(reshard(from, *between), to, false);
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
  const Sharded moved = try_reshard(inner, target.tiling, true);
  const Sharded outer{moved.value, from.shape, ungroup(target), from.context};
  return try_reshard(outer, to, true);
}

Sharded slice_whole(const Sharded& from, const Tiling& to) {
  Context& context = *from.context;
  Builder& builder = context.builder();
  const ValueId padded = pad_high(builder, from.value, padded_shape(from.shape, to));
  const ValueId slice = builder.dynamic_slice(padded, tile_offsets(context, from.shape, to),
                                              shard_shape(from.shape, to));
  return {slice, from.shape, to, from.context};
}

Sharded try_reshard(const Sharded& from, const Tiling& to, bool may_replicate) {
  if (from.tiling == to) return from;
  Builder& builder = from.context->builder();
  if (is_splat(builder, from.value)) {
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

double element_bytes(const TensorType& type) {
  return static_cast<double>(bits_of(type.dtype.value_or(DType::f32))) / 8;
}

// What one device sends in the collectives that lead from one value to another.
double wire_bytes_between(const Builder& builder, ValueId from, ValueId to) {
  double bytes = 0;
  std::vector<ValueId> open = {to};
  std::vector<ValueId> seen;
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (value == from || std::find(seen.begin(), seen.end(), value) != seen.end()) continue;
    seen.push_back(value);
    const Op* op = builder.definition(value);
    if (op == nullptr || value < from) continue;
    bytes += sent_bytes(builder, *op);
    open.insert(open.end(), op->operands.begin(), op->operands.end());
  }
  return bytes;
}

// As XLA goes, unless a way that sends less is found.
Sharded reshard_cheaply(const Sharded& from, const Tiling& to) {
  const Sharded usual = try_reshard(from, to, true);
  Context& context = *from.context;
  const Builder& builder = context.builder();
  if (context.digits.empty()) return usual;
  const double usual_bytes = wire_bytes_between(builder, from.value, usual.value);
  const double size = element_bytes(builder.type(from.value));
  if (usual_bytes <= least_bytes(from.shape, size, from.tiling, to)) return usual;
  const auto path = cheapest_path(from.shape, size, from.tiling, to, context.digits, usual_bytes);
  if (!path) return usual;
  // Steps that XLA's ways do at once, for no more, are taken at once.
  Sharded value = from;
  for (std::size_t i = 0; i < path->steps.size();) {
    Sharded next = try_reshard(value, path->steps[i], true);
    std::size_t taken = i;
    double bytes = wire_bytes_between(builder, value.value, next.value);
    for (std::size_t j = i + 1; j < path->steps.size(); ++j) {
      const Sharded single = try_reshard(next, path->steps[j], true);
      bytes += wire_bytes_between(builder, next.value, single.value);
      const Sharded direct = try_reshard(value, path->steps[j], true);
      if (wire_bytes_between(builder, value.value, direct.value) > bytes) break;
      next = direct;
      taken = j;
    }
    value = next;
    i = taken + 1;
  }
  return wire_bytes_between(builder, from.value, value.value) < usual_bytes ? value : usual;
}

void remember(const Sharded& from, const Sharded& to) {
  from.context->cache[from.value].insert_or_assign(to.tiling, to);
  to.context->cache[to.value].insert_or_assign(from.tiling, from);
}

}  // namespace

Sharded reshard(const Sharded& from, const Tiling& target) {
  if (from.tiling == target) return from;
  const auto& known = from.context->cache[from.value];
  if (const auto found = known.find(target); found != known.end()) return found->second;
  const Sharded result = reshard_cheaply(from, target);
  remember(from, result);
  return result;
}

Sharded replicate(const Sharded& from) {
  if (from.tiling.is_replicated()) return from;
  const auto& known = from.context->cache[from.value];
  if (const auto found = known.find(Tiling()); found != known.end()) return found->second;
  const Sharded result{replicate_partial(from, iota_dims(from.shape.size())), from.shape, Tiling(),
                       from.context};
  remember(from, result);
  return result;
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
