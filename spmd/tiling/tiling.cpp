#include "spmd/tiling/tiling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

// Places of `from` in row-major order, read in the order of `permutation`.
std::vector<int> permuted(const std::vector<int>& from, const Shape& extents,
                          const Dims& permutation) {
  Shape strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  std::vector<int> result;
  result.reserve(from.size());
  Dims index(extents.size(), 0);
  for (std::size_t count = 0; count < from.size(); ++count) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < permutation.size(); ++i) {
      place += index[i] * strides[at(permutation[i])];
    }
    result.push_back(from[at(place)]);
    for (std::size_t i = permutation.size(); i-- > 0;) {
      if (++index[i] < extents[at(permutation[i])]) break;
      index[i] = 0;
    }
  }
  return result;
}

}  // namespace

std::int64_t product(const Shape& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return ceil_div(value, multiple) * multiple;
}

bool holds(const Dims& dims, std::int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

Dims iota_dims(std::size_t count) {
  Dims dims(count);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Tiling Tiling::tiled(Shape tiles, std::vector<int> devices) {
  Tiling result;
  const std::int64_t count = product(tiles);
  assert(count > 0 && static_cast<std::int64_t>(devices.size()) % count == 0);
  if (count == 1) return result;
  result.replicas_ = static_cast<std::int64_t>(devices.size()) / count;
  result.tiles_ = std::move(tiles);
  result.devices_ = std::move(devices);
  if (result.replicas_ > 1) {
    for (auto first = result.devices_.begin(); first != result.devices_.end();
         first += result.replicas_) {
      std::sort(first, first + result.replicas_);
    }
  }
  return result;
}

std::int64_t Tiling::tiles(std::int64_t dim) const {
  return is_replicated() ? 1 : tiles_.at(at(dim));
}

std::int64_t Tiling::tile_count() const { return product(tiles_); }

Shape Tiling::extents() const {
  Shape result = tiles_;
  if (is_partial()) result.push_back(replicas_);
  return result;
}

void Tiling::each(const std::function<void(const Dims& index, int device)>& visit) const {
  const Shape sizes = extents();
  Dims index(sizes.size(), 0);
  for (const int device : devices_) {
    visit(index, device);
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (++index[i] < sizes[i]) break;
      index[i] = 0;
    }
  }
}

int Tiling::device_at(const Dims& index) const {
  const Shape sizes = extents();
  assert(index.size() == sizes.size());
  std::int64_t place = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) place = place * sizes[i] + index[i];
  return devices_[at(place)];
}

std::string text_of(const Tiling& tiling) {
  if (tiling.is_replicated()) return "{replicated}";
  return fmt::format("{{devices=[{}]{}{}}}", fmt::join(tiling.extents(), ","),
                     fmt::join(tiling.devices(), ","),
                     tiling.is_partial() ? " last_tile_dim_replicate" : "");
}

Shape shard_shape(const Shape& shape, const Tiling& tiling) {
  if (tiling.is_replicated()) return shape;
  assert(shape.size() == tiling.tiles().size());
  Shape result = shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    result[i] = ceil_div(shape[i], tiling.tiles()[i]);
  }
  return result;
}

bool divides_evenly(const Shape& shape, const Tiling& tiling) {
  for (std::size_t i = 0; i < tiling.tiles().size(); ++i) {
    if (shape[i] % tiling.tiles()[i] != 0) return false;
  }
  return true;
}

Tiling transpose(const Tiling& tiling, const Dims& permutation) {
  if (tiling.is_replicated()) return tiling;
  Shape from = tiling.tiles();
  from.push_back(tiling.replicas());
  Dims order = permutation;
  if (order.size() < from.size()) order.push_back(static_cast<std::int64_t>(from.size()) - 1);
  assert(order.size() == from.size());
  Shape tiles;
  for (const std::int64_t dim : order) tiles.push_back(from[at(dim)]);
  tiles.pop_back();
  return Tiling::tiled(std::move(tiles), permuted(tiling.devices(), from, order));
}

Tiling reshape_extents(const Tiling& tiling, const Shape& extents, bool partial) {
  assert(product(extents) == static_cast<std::int64_t>(tiling.devices().size()));
  Shape tiles = extents;
  if (partial) tiles.pop_back();
  return Tiling::tiled(std::move(tiles), tiling.devices());
}

Tiling replicate_dims(const Tiling& tiling, const Dims& dims) {
  if (tiling.is_replicated()) return tiling;
  Shape from = tiling.tiles();
  from.push_back(tiling.replicas());
  Dims order;
  Shape tiles = tiling.tiles();
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (!holds(dims, static_cast<std::int64_t>(i))) order.push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (!holds(dims, static_cast<std::int64_t>(i))) continue;
    order.push_back(static_cast<std::int64_t>(i));
    tiles[i] = 1;
  }
  order.push_back(static_cast<std::int64_t>(tiles.size()));
  return Tiling::tiled(std::move(tiles), permuted(tiling.devices(), from, order));
}

Tiling replicate_all_but(const Tiling& tiling, const Dims& dims) {
  Dims others;
  for (std::size_t i = 0; i < tiling.tiles().size(); ++i) {
    if (!holds(dims, static_cast<std::int64_t>(i))) others.push_back(static_cast<std::int64_t>(i));
  }
  return replicate_dims(tiling, others);
}

Tiling remove_dims(const Tiling& tiling, const Dims& dims) {
  if (tiling.is_replicated()) return tiling;
  Shape tiles;
  for (std::size_t i = 0; i < tiling.tiles().size(); ++i) {
    if (holds(dims, static_cast<std::int64_t>(i))) {
      assert(tiling.tiles()[i] == 1);
    } else {
      tiles.push_back(tiling.tiles()[i]);
    }
  }
  return Tiling::tiled(std::move(tiles), tiling.devices());
}

Tiling insert_dim(const Tiling& tiling, std::int64_t dim) {
  if (tiling.is_replicated()) return tiling;
  Shape tiles = tiling.tiles();
  tiles.insert(tiles.begin() + dim, 1);
  return Tiling::tiled(std::move(tiles), tiling.devices());
}

Tiling split_dim(const Tiling& tiling, std::int64_t dim, std::int64_t major) {
  if (tiling.is_replicated()) return tiling;
  Shape tiles = tiling.tiles();
  assert(tiles[at(dim)] % major == 0);
  tiles.insert(tiles.begin() + dim + 1, tiles[at(dim)] / major);
  tiles[at(dim)] = major;
  return Tiling::tiled(std::move(tiles), tiling.devices());
}

Tiling merge_dim(const Tiling& tiling, std::int64_t dim) {
  if (tiling.is_replicated()) return tiling;
  Shape tiles = tiling.tiles();
  tiles[at(dim)] *= tiles[at(dim + 1)];
  tiles.erase(tiles.begin() + dim + 1);
  return Tiling::tiled(std::move(tiles), tiling.devices());
}

DeviceGroups groups_along(const Tiling& tiling, const Dims& dims) {
  const Shape sizes = tiling.extents();
  std::int64_t count = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!holds(dims, static_cast<std::int64_t>(i))) count *= sizes[i];
  }
  DeviceGroups groups(at(count));
  tiling.each([&](const Dims& index, int device) {
    std::int64_t group = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!holds(dims, static_cast<std::int64_t>(i))) group = group * sizes[i] + index[i];
    }
    groups[at(group)].push_back(device);
  });
  return groups;
}

GroupedTiling group_by(const Tiling& tiling, const Dims& dims) {
  const Shape extents = tiling.extents();
  Shape sizes;
  for (const std::int64_t dim : dims) sizes.push_back(extents[at(dim)]);
  return group_by(tiling, dims, sizes);
}

GroupedTiling group_by(const Tiling& tiling, const Dims& dims, const Shape& sizes) {
  GroupedTiling result;
  result.dims = dims;
  result.sizes = sizes;
  result.rank = tiling.tiles().size();
  Shape inner = tiling.extents();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    assert(inner[at(dims[i])] % sizes[i] == 0);
    inner[at(dims[i])] /= sizes[i];
  }
  result.groups.resize(at(product(sizes)));
  tiling.each([&](const Dims& index, int device) {
    std::int64_t group = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      group = group * sizes[i] + index[at(dims[i])] / inner[at(dims[i])];
    }
    result.groups[at(group)].push_back(device);
  });
  Shape tiles(inner.begin(), inner.begin() + static_cast<std::ptrdiff_t>(result.rank));
  std::vector<int> local(result.groups.front().size());
  std::iota(local.begin(), local.end(), 0);
  result.tiling = Tiling::tiled(std::move(tiles), std::move(local));
  return result;
}

GroupedTiling align_groups(GroupedTiling grouped, const GroupedTiling& reference,
                           bool ignore_order) {
  assert(grouped.groups.size() == reference.groups.size());
  const std::size_t per_group = reference.groups.front().size();
  std::vector<std::pair<std::size_t, int>> places(reference.groups.size() * per_group);
  for (std::size_t group = 0; group < reference.groups.size(); ++group) {
    for (std::size_t i = 0; i < per_group; ++i) {
      places[at(reference.groups[group][i])] = {group, static_cast<int>(i)};
    }
  }
  const auto is_group = [&](std::size_t group) {
    const std::size_t same = places[at(grouped.groups[group].front())].first;
    return (ignore_order || same == group) &&
           std::all_of(grouped.groups[group].begin(), grouped.groups[group].end(),
                       [&](int device) { return places[at(device)].first == same; });
  };
  bool same_groups = true;
  for (std::size_t group = 0; group < grouped.groups.size(); ++group) {
    same_groups = same_groups && is_group(group);
  }
  if (same_groups && !grouped.tiling.is_replicated()) {
    std::vector<int> devices = grouped.tiling.devices();
    for (int& device : devices) {
      device = places[at(grouped.groups.front()[at(device)])].second;
    }
    grouped.tiling = Tiling::tiled(grouped.tiling.tiles(), std::move(devices));
  }
  grouped.groups = reference.groups;
  return grouped;
}

Tiling ungroup(const GroupedTiling& grouped) {
  // Extents of the whole: those within a group, with the groups before each grouped dimension.
  const bool inner_whole = grouped.tiling.is_replicated();
  Shape inner = inner_whole ? Shape(grouped.rank, 1) : grouped.tiling.tiles();
  const std::size_t per_group = grouped.groups.front().size();
  inner.push_back(inner_whole ? static_cast<std::int64_t>(per_group) : grouped.tiling.replicas());
  Shape outer(inner.size(), 1);
  for (std::size_t i = 0; i < grouped.dims.size(); ++i) {
    outer[at(grouped.dims[i])] = grouped.sizes[i];
  }
  std::vector<int> local = grouped.tiling.devices();
  if (inner_whole) {
    local.resize(per_group);
    std::iota(local.begin(), local.end(), 0);
  }
  Shape whole(inner.size());
  for (std::size_t i = 0; i < inner.size(); ++i) whole[i] = inner[i] * outer[i];
  std::vector<int> devices(at(product(whole)));
  for (std::size_t group = 0; group < grouped.groups.size(); ++group) {
    Dims group_index(inner.size(), 0);
    std::int64_t rest = static_cast<std::int64_t>(group);
    for (std::size_t i = grouped.dims.size(); i-- > 0;) {
      group_index[at(grouped.dims[i])] = rest % grouped.sizes[i];
      rest /= grouped.sizes[i];
    }
    Dims index(inner.size(), 0);
    for (const int device : local) {
      std::int64_t place = 0;
      for (std::size_t i = 0; i < inner.size(); ++i) {
        place = place * whole[i] + group_index[i] * inner[i] + index[i];
      }
      devices[at(place)] = grouped.groups[group][at(device)];
      for (std::size_t i = inner.size(); i-- > 0;) {
        if (++index[i] < inner[i]) break;
        index[i] = 0;
      }
    }
  }
  whole.pop_back();
  return Tiling::tiled(std::move(whole), std::move(devices));
}

}  // namespace shardsim::spmd
