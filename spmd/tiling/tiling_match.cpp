#include "spmd/tiling/tiling_match.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <set>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

// indices[device]: where a device stands in the array of extents.
std::vector<Dims> places(const Tiling& tiling) {
  std::vector<Dims> result(tiling.devices().size());
  tiling.each([&](const Dims& index, int device) { result[at(device)] = index; });
  return result;
}

// Which tile, counted row by row; replicas do not count.
std::int64_t tile_number(const Tiling& tiling, const Dims& index) {
  std::int64_t number = 0;
  for (std::size_t i = 0; i < tiling.tiles().size(); ++i) {
    number = number * tiling.tiles()[i] + index[i];
  }
  return number;
}

std::vector<std::set<int>> devices_of_tiles(const Tiling& tiling) {
  std::vector<std::set<int>> result(at(tiling.tile_count()));
  tiling.each([&](const Dims& index, int device) {
    result[at(tile_number(tiling, index))].insert(device);
  });
  return result;
}

}  // namespace

std::optional<Tiling> match_dims(const Tiling& tiling, const Dims& to_of, const Dims& from_of) {
  if (tiling.is_replicated()) return tiling;
  Dims order;
  Shape tiles;
  for (const std::int64_t from : from_of) {
    if (from >= 0) order.push_back(from);
    tiles.push_back(from < 0 ? 1 : tiling.tiles(from));
  }
  for (std::size_t i = 0; i < to_of.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (to_of[i] >= 0) continue;
    if (tiling.tiles(dim) > 1) return std::nullopt;
    order.push_back(dim);
  }
  return Tiling::tiled(std::move(tiles), transpose(tiling, order).devices());
}

bool is_finer_or_equal(const Shape& shape, const Tiling& finer, const Tiling& coarser) {
  if (coarser.is_replicated()) return true;
  if (finer.is_replicated()) return false;
  const Shape fine = shard_shape(shape, finer);
  const Shape coarse = shard_shape(shape, coarser);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (finer.tiles()[i] < coarser.tiles()[i]) return false;
  }
  const std::vector<Dims> coarse_places = places(coarser);
  bool inside = true;
  finer.each([&](const Dims& index, int device) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t begin = index[i] * fine[i];
      const std::int64_t outer = coarse_places[at(device)][i] * coarse[i];
      // The last tile may be padded beyond the end; what is there does not count.
      const bool is_last = begin + fine[i] >= shape[i];
      inside = inside && begin >= outer && (is_last || begin + fine[i] <= outer + coarse[i]);
    }
  });
  return inside;
}

std::optional<Tiling> merge_tilings(const Tiling& a, const Tiling& b, std::int64_t least) {
  assert(a.is_partial() && b.is_partial() && a.devices().size() == b.devices().size());
  Shape tiles;
  for (std::size_t i = 0; i < a.tiles().size(); ++i) {
    const std::int64_t in_a = a.tiles()[i];
    const std::int64_t in_b = b.tiles()[i];
    if (in_a != 1 && in_b != 1 && in_a != in_b) return std::nullopt;
    tiles.push_back(std::max(in_a, in_b));
  }
  const std::int64_t count = product(tiles);
  const auto devices = static_cast<std::int64_t>(a.devices().size());
  if (count < least || devices % count != 0) return std::nullopt;

  // A merged tile lies where both tiles that it is part of lie. There are as many devices as tiles
  // and replicas need, so that no tile may have more than its share.
  const std::vector<std::set<int>> with_a = devices_of_tiles(a);
  const std::vector<std::set<int>> with_b = devices_of_tiles(b);
  std::vector<int> merged;
  Dims index(tiles.size(), 0);
  for (std::int64_t tile = 0; tile < count; ++tile) {
    Dims in_a = index;
    Dims in_b = index;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      if (a.tiles()[i] == 1) in_a[i] = 0;
      if (b.tiles()[i] == 1) in_b[i] = 0;
    }
    const std::set<int>& of_a = with_a[at(tile_number(a, in_a))];
    const std::set<int>& of_b = with_b[at(tile_number(b, in_b))];
    std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                          std::back_inserter(merged));
    if (static_cast<std::int64_t>(merged.size()) != (tile + 1) * (devices / count)) {
      return std::nullopt;
    }
    for (std::size_t i = tiles.size(); i-- > 0;) {
      if (++index[i] < tiles[i]) break;
      index[i] = 0;
    }
  }
  return Tiling::tiled(std::move(tiles), std::move(merged));
}

std::optional<Dims> dims_of_groups(const Tiling& tiling, const DeviceGroups& groups) {
  if (tiling.is_replicated() || groups.size() < 2) return std::nullopt;
  if (tiling.devices().size() != groups.size() * groups.front().size()) return std::nullopt;
  const Shape extents = tiling.extents();
  Dims dims;
  if (groups.front().size() == 1) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] > 1) dims.push_back(static_cast<std::int64_t>(i));
    }
    return dims;
  }
  const std::vector<Dims> place = places(tiling);
  const auto index_of = [&](int device, std::int64_t dim) { return place[at(device)][at(dim)]; };
  std::int64_t count = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (index_of(groups[0][0], dim) != index_of(groups[0][1], dim)) continue;
    dims.push_back(dim);
    count *= extents[i];
  }
  if (count != static_cast<std::int64_t>(groups.size())) return std::nullopt;
  for (const std::vector<int>& group : groups) {
    for (const int device : group) {
      for (const std::int64_t dim : dims) {
        if (index_of(device, dim) != index_of(group.front(), dim)) return std::nullopt;
      }
    }
  }
  return dims;
}

std::optional<GroupedTiling> group_replicas_into(const Tiling& tiling, const DeviceGroups& groups) {
  const auto count = static_cast<std::int64_t>(groups.size());
  if (!tiling.is_partial() || tiling.replicas() % count != 0) return std::nullopt;
  const std::int64_t replicas = tiling.replicas() / count;
  const std::vector<Dims> place = places(tiling);
  std::optional<Tiling> inner;
  for (const std::vector<int>& group : groups) {
    std::vector<std::int64_t> taken(at(tiling.tile_count()), 0);
    std::vector<int> local(group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::int64_t tile = tile_number(tiling, place[at(group[i])]);
      if (taken[at(tile)] == replicas) return std::nullopt;
      local[at(tile * replicas + taken[at(tile)]++)] = static_cast<int>(i);
    }
    const Tiling of_group = Tiling::tiled(tiling.tiles(), std::move(local));
    if (inner.has_value() && *inner != of_group) return std::nullopt;
    inner = of_group;
  }
  GroupedTiling result;
  result.groups = groups;
  result.rank = tiling.tiles().size();
  result.dims = {static_cast<std::int64_t>(result.rank)};
  result.sizes = {count};
  result.tiling = *inner;
  return result;
}

bool same_groups(const DeviceGroups& a, const DeviceGroups& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::is_permutation(a[i].begin(), a[i].end(), b[i].begin(), b[i].end())) return false;
  }
  return true;
}

Tiling with_extents(const Tiling& tiling, const Shape& extents) {
  return reshape_extents(tiling, extents, extents.size() > tiling.tiles().size());
}

Tiling reversed(const Tiling& tiling, const Dims& dims) {
  if (tiling.is_replicated()) return tiling;
  const Shape extents = tiling.extents();
  std::vector<int> devices;
  tiling.each([&](const Dims& index, int) {
    Dims from = index;
    for (const std::int64_t dim : dims) from[at(dim)] = extents[at(dim)] - 1 - index[at(dim)];
    devices.push_back(tiling.device_at(from));
  });
  return Tiling::tiled(tiling.tiles(), std::move(devices));
}

}  // namespace shardsim::spmd
