#include <algorithm>

#include "base/index.hpp"
#include "spmd/ops/halo.hpp"
#include "spmd/reshard/reshard_choice.hpp"
#include "spmd/reshard/reshard_steps.hpp"

namespace shardsim::spmd {
namespace {

// One dimension of tiles against another: split the target dimension of every tile over the group,
// and put what arrives together along the source dimension.
Sharded exchange_dims(const Sharded& from, std::int64_t source, std::int64_t target) {
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
  return exchanged_value;
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
    value = exchange_dims(value, source, target);
  }
  return value.tiling == to ? value : permute(value, to);
}

}  // namespace

Sharded permute(const Sharded& from, const Tiling& to) {
  Builder& builder = from.context->builder();
  const Dims& alike = builder.broadcast_dims(from.value);
  if (!alike.empty() && replicate_dims(from.tiling, alike) == replicate_dims(to, alike)) {
    return {builder.copy(from.value), from.shape, to, from.context};
  }
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < to.devices().size(); ++i) {
    pairs.emplace_back(from.tiling.devices()[i], to.devices()[i]);
  }
  const ValueId moved = collective_permute(*from.context, from.value, pairs);
  return {moved, from.shape, to, from.context};
}

Sharded exchange(const Sharded& from, const Tiling& to, const DimPairs& pairs) {
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

}  // namespace shardsim::spmd
