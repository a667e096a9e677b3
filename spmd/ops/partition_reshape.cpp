// Reshapes: dimensions that correspond keep their tiles; where only some do, the others are
// reshaped within groups of them; uneven tiles are cut anew where one split dimension becomes one
// split dimension.
#include <algorithm>

#include "base/index.hpp"
#include "spmd/ops/windowed.hpp"
#include "spmd/partitioner.hpp"
#include "spmd/tiling/tiling_reshape.hpp"

namespace shardsim::spmd {
namespace {

struct TilingPair {
  Tiling from;
  Tiling to;
};

Sharded reshape_whole(const Sharded& operand, const Tiling& tiling, const Shape& shape) {
  Builder& builder = operand.context->builder();
  const ValueId made = builder.reshape(replicate(operand).value, shape);
  return reshard({made, shape, Tiling(), operand.context}, tiling);
}

std::int64_t size_before(const Shape& shape, std::int64_t dim) {
  return product(Shape(shape.begin(), shape.begin() + dim));
}

// The local elements of `dim`, cut so that every tile has `tile` of them.
std::optional<ValueId> recut(const Sharded& value, std::int64_t dim, std::int64_t tile) {
  Builder& builder = value.context->builder();
  Window window(value.shape.size());
  window[at(dim)].high = tile * value.tiles(dim) - value.shape[at(dim)];
  const auto input = reshard_for_window(value, window, value.tiling,
                                        builder.zero(builder.type(value.value)), Masking::none);
  if (!input) return {};
  return input->value;
}

// One split dimension of each side, with the same elements before it: the one divides into the
// other, and tiles of unequal size are made up by a halo exchange.
Sharded reshape_uneven(const Sharded& given, const Tiling& tiling, const Shape& shape) {
  const auto from_dim = only_tiled_dim(given.tiling);
  const auto to_dim = only_tiled_dim(tiling);
  if (given.tiling.tile_count() != tiling.tile_count() || !from_dim || !to_dim ||
      size_before(given.shape, *from_dim) != size_before(shape, *to_dim)) {
    return reshape_whole(given, tiling, shape);
  }
  const Sharded operand = reshard(given, Tiling::tiled(given.tiling.tiles(), tiling.devices()));
  Builder& builder = operand.context->builder();
  const std::int64_t from_size = operand.shape[at(*from_dim)];
  const std::int64_t to_size = shape[at(*to_dim)];
  const Shape local = shard_shape(shape, tiling);
  if (from_size % to_size == 0) {
    const auto cut = recut(operand, *from_dim, local[at(*to_dim)] * (from_size / to_size));
    if (!cut) return reshape_whole(operand, tiling, shape);
    return {builder.reshape(*cut, local), shape, tiling, operand.context};
  }
  if (to_size % from_size == 0) {
    Shape uncut = local;
    uncut[at(*to_dim)] = builder.shape(operand.value)[at(*from_dim)] * (to_size / from_size);
    Shape padded = uncut;
    padded[at(*to_dim)] *= tiling.tiles(*to_dim);
    const Sharded reshaped{builder.reshape(operand.value, uncut), padded, tiling, operand.context};
    Window window(shape.size());
    window[at(*to_dim)].high = to_size - padded[at(*to_dim)];
    const auto input = reshard_for_window(reshaped, window, tiling,
                                          builder.zero(builder.type(operand.value)), Masking::none);
    if (!input) return reshape_whole(operand, tiling, shape);
    return {input->value, shape, tiling, operand.context};
  }
  return reshape_whole(operand, tiling, shape);
}

// Dimensions that go through as they are tell groups apart; within them the rest is reshaped.
Sharded reshape_within_groups(const Sharded& operand, const Tiling& tiling, const Shape& shape) {
  const Tiling through = reshape_tiling_in_parts(operand.shape, shape, operand.tiling);
  if (through.is_replicated()) return reshape_uneven(operand, tiling, shape);
  const auto back = reshape_tiling(shape, operand.shape, through);
  if (!back || back->is_replicated()) return reshape_uneven(operand, tiling, shape);
  Builder& builder = operand.context->builder();
  Dims from_dims;
  Shape inner_from = operand.shape;
  for (std::size_t i = 0; i < inner_from.size(); ++i) {
    if (back->tiles()[i] == 1) continue;
    from_dims.push_back(static_cast<std::int64_t>(i));
    inner_from[i] = builder.shape(operand.value)[i];
  }
  Dims to_dims;
  Shape inner_to = shape;
  // What is wanted may be split further; then it is what the groups are made of.
  bool use_wanted = tiling.tile_count() > through.tile_count();
  for (std::size_t i = 0; i < inner_to.size(); ++i) {
    const std::int64_t tiles = through.tiles()[i];
    if (tiles == 1) continue;
    to_dims.push_back(static_cast<std::int64_t>(i));
    inner_to[i] = ceil_div(shape[i], tiles);
    if (tiles != tiling.tiles(static_cast<std::int64_t>(i))) use_wanted = false;
  }
  const GroupedTiling from_groups = group_by(operand.tiling, from_dims);
  // Nothing is gained where the groups are as split as the whole.
  if (from_groups.tiling.tile_count() >= operand.tiling.tile_count()) {
    return reshape_uneven(operand, tiling, shape);
  }
  GroupedTiling to_groups = group_by(use_wanted ? tiling : through, to_dims);
  if (use_wanted) to_groups = align_groups(std::move(to_groups), from_groups);
  const Sharded inner{builder.copy(operand.value), inner_from, from_groups.tiling,
                      &operand.context->grouped(from_groups.groups)};
  const Sharded reshaped = reshape_within_groups(inner, to_groups.tiling, inner_to);
  return reshard({reshaped.value, shape, ungroup(to_groups), operand.context}, tiling);
}

}  // namespace

void partition_reshape(Partitioner& p, const OpView& op) {
  const Tiling wanted = p.tiling_of_result(op, 0);
  if (wanted.is_replicated()) return p.replicated(op);
  const Sharded operand = p.operand(op, 0);
  const Shape& from = operand.shape;
  const Shape& to = op.result(0);
  std::vector<TilingPair> pairs;
  const auto add = [&](const Tiling& a, const Tiling& b) {
    if (a.tile_count() == b.tile_count()) pairs.push_back({a, b});
  };
  if (const auto back = reshape_tiling(to, from, wanted)) add(*back, wanted);
  if (const auto forth = reshape_tiling(from, to, operand.tiling)) {
    if (const auto back = reshape_tiling(to, from, *forth)) add(*back, *forth);
  }
  if (pairs.empty()) {
    p.set_result(op, 0, reshape_within_groups(operand, wanted, to));
    return;
  }
  const auto reshaped = [&](const Sharded& value, const Tiling& tiling) {
    return Sharded{p.builder().reshape(value.value, shard_shape(to, tiling)), to, tiling,
                   &p.context()};
  };
  const Sharded made = reshaped(reshard(operand, pairs.front().from), pairs.front().to);
  const Sharded result = reshard(made, wanted);
  // Whoever wants the result as the operand lies can have it without moving anything.
  if (pairs.size() == 2 && pairs.back().from == operand.tiling && pairs.back().to != wanted) {
    result.context->cache[result.value].insert_or_assign(pairs.back().to,
                                                         reshaped(operand, pairs.back().to));
  }
  p.set_result(op, 0, result);
}

}  // namespace shardsim::spmd
