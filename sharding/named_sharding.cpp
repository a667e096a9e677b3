#include "sharding/named_sharding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "base/units.hpp"

namespace shardsim {
namespace {

// What `used` leaves of the mesh, major to minor: whole axes, and the gaps between parts of one.
AxisList remaining_axes(AxisList used, const Mesh& mesh) {
  std::sort(used.begin(), used.end());
  AxisList remaining;
  auto part = used.begin();
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    const auto axis = static_cast<int>(i);
    std::int64_t pre_size = 1;
    const auto fill_up_to = [&](std::int64_t end) {
      if (end > pre_size) remaining.push_back({axis, pre_size, end / pre_size});
    };
    for (; part != used.end() && part->axis == axis; ++part) {
      fill_up_to(part->pre_size);
      pre_size = part->pre_size * part->size;
    }
    fill_up_to(mesh.axes()[i].size);
  }
  return remaining;
}

}  // namespace

IndivisibleError::IndivisibleError(const Place& place, std::size_t dimension, std::int64_t size,
                                   std::vector<std::int64_t> shards_per_dim)
    : RuleError("IndivisibleError", place,
                fmt::format("dimension {} has {} elements, which its {} shards do not divide; "
                            "shards per dimension: [{}]",
                            dimension, size, shards_per_dim.at(dimension),
                            fmt::join(shards_per_dim, ", "))),
      dimension_(dimension),
      shards_per_dim_(std::move(shards_per_dim)) {}

std::vector<std::int64_t> shards_per_dim(const Sharding& sharding) {
  std::vector<std::int64_t> shards;
  for (const DimSharding& dim : sharding.dims) shards.push_back(Mesh::size_of(dim.axes));
  return shards;
}

void check_divides(const std::vector<std::int64_t>& shape, const Sharding& sharding,
                   const Place& place) {
  assert(shape.size() == sharding.dims.size());
  const std::vector<std::int64_t> shards = shards_per_dim(sharding);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] % (shards[d] * sharding.dims[d].blocks) != 0) {
      throw IndivisibleError(place, d, shape[d], shards);
    }
  }
}

std::vector<std::int64_t> shard_shape(const std::vector<std::int64_t>& shape,
                                      const Sharding& sharding) {
  assert(shape.size() == sharding.dims.size());
  std::vector<std::int64_t> result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    result.push_back(shard_size(shape[d], sharding.dims[d]));
  }
  return result;
}

std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::int64_t shards) {
  const std::int64_t chunk = ceil_div(size, shards);
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = size; std::ssize(sizes) < shards; left -= sizes.back()) {
    sizes.push_back(std::min(chunk, left));
  }
  return sizes;
}

bool is_fully_replicated(const Sharding& sharding) {
  return Mesh::size_of(split_axes(sharding)) == 1;
}

std::int64_t replicas_per_shard(const Sharding& sharding, const Mesh& mesh) {
  return mesh.devices() / Mesh::size_of(split_axes(sharding));
}

DeviceIndex::DeviceIndex(const std::vector<std::int64_t>& shape, const Sharding& sharding,
                         const Mesh& mesh)
    : devices_(mesh.devices()) {
  assert(shape.size() == sharding.dims.size());
  std::vector<std::int64_t> below(mesh.axes().size(), 1);  // devices per step along a whole axis
  for (std::size_t axis = below.size(); axis-- > 1;) {
    below[axis - 1] = below[axis] * mesh.axes()[axis].size;
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const DimSharding& dim = sharding.dims[d];
    assert(shape[d] % dim.blocks == 0);
    Dimension dimension{shape[d], dim.blocks, Mesh::size_of(dim.axes), {}};
    for (const AxisRef& part : dim.axes) {
      const auto axis = static_cast<std::size_t>(part.axis);
      const std::int64_t minor = mesh.axes()[axis].size / (part.pre_size * part.size);
      dimension.axes.push_back({part.size, minor * below[axis]});
    }
    dims_.push_back(std::move(dimension));
  }
}

bool DeviceIndex::is_cut(std::size_t dimension) const { return dims_.at(dimension).shards > 1; }

std::int64_t DeviceIndex::chunk(std::int64_t device, std::size_t dimension) const {
  std::int64_t chunk = 0;
  for (const Axis& axis : dims_.at(dimension).axes) {
    chunk = chunk * axis.size + device / axis.stride % axis.size;
  }
  return chunk;
}

std::vector<IndexRange> DeviceIndex::ranges(std::int64_t device) const {
  assert(device >= 0 && device < devices_);
  std::vector<IndexRange> ranges;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    const Dimension& dim = dims_[d];
    const std::int64_t block_size = dim.size / dim.blocks;
    const std::int64_t length = ceil_div(block_size, dim.shards);
    const std::int64_t begin = std::min(chunk(device, d) * length, block_size);
    ranges.push_back({begin, std::min(begin + length, block_size), dim.blocks, block_size});
  }
  return ranges;
}

std::vector<std::int64_t> DeviceIndex::replica_ids() const {
  std::vector<std::int64_t> ids;
  std::map<std::vector<IndexRange>, std::int64_t> holders;
  for (std::int64_t device = 0; device < devices_; ++device) {
    ids.push_back(holders[ranges(device)]++);
  }
  return ids;
}

std::optional<TileAssignment> tile_assignment(const Sharding& sharding, const Mesh& mesh) {
  if (is_fully_replicated(sharding)) return std::nullopt;
  TileAssignment tiles{shards_per_dim(sharding), {}};
  const std::int64_t replicas = replicas_per_shard(sharding, mesh);
  if (replicas > 1) tiles.dims.push_back(replicas);
  // The replicas of a tile stand next to each other.
  AxisList axes = split_axes(sharding);
  const AxisList replicating = remaining_axes(axes, mesh);
  axes.insert(axes.end(), replicating.begin(), replicating.end());
  tiles.devices = mesh.first_group(axes);
  return tiles;
}

bool hold_same_parts(const DeviceIndex& a, const DeviceIndex& b) {
  if (a.devices() != b.devices()) return false;
  for (std::int64_t device = 0; device < a.devices(); ++device) {
    if (a.ranges(device) != b.ranges(device)) return false;
  }
  return true;
}

}  // namespace shardsim
