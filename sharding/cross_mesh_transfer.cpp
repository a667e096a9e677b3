#include "sharding/cross_mesh_transfer.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <set>

namespace shardsim {
namespace {

// Which of the chunks of a dimension a device holds: the mixed-radix number of its coordinates.
std::int64_t chunk_at(const AxisList& axes, const Mesh& mesh, std::int64_t position) {
  std::int64_t chunk = 0;
  for (const AxisRef& part : axes) {
    const auto axis = static_cast<std::size_t>(part.axis);
    std::int64_t stride = mesh.axes()[axis].size / (part.pre_size * part.size);
    for (std::size_t minor = axis + 1; minor < mesh.axes().size(); ++minor) {
      stride *= mesh.axes()[minor].size;
    }
    chunk = chunk * part.size + position / stride % part.size;
  }
  return chunk;
}

DimRange range_of(std::int64_t size, const DimSharding& dim, std::int64_t chunk) {
  assert(dim.blocks == 1);
  const std::int64_t width = shard_size(size, dim);
  return {std::min(size, chunk * width), std::min(size, (chunk + 1) * width)};
}

// A chunk of the source in one dimension, and how much of it is wanted.
struct Overlap {
  std::int64_t chunk = 0;
  std::int64_t size = 0;
};

// By chunk of the target: the chunks of the source that it meets, in order.
using Overlaps = std::vector<std::vector<Overlap>>;

Overlaps overlaps_of(std::int64_t size, const DimSharding& source, const DimSharding& target) {
  Overlaps overlaps(static_cast<std::size_t>(Mesh::size_of(target.axes)));
  const std::int64_t width = shard_size(size, source);
  for (std::size_t i = 0; i < overlaps.size(); ++i) {
    const DimRange wanted = range_of(size, target, static_cast<std::int64_t>(i));
    for (std::int64_t at = wanted.begin; at < wanted.end;) {
      const std::int64_t chunk = at / width;
      const std::int64_t end = std::min(wanted.end, (chunk + 1) * width);
      overlaps[i].push_back({chunk, end - at});
      at = end;
    }
  }
  return overlaps;
}

// Who holds every shard of the source. Shards are numbered row-major by their chunks; the holders
// of one are ordered by domain, then by position in the mesh.
class Holders {
 public:
  using Domain = std::function<std::int64_t(std::int64_t)>;

  Holders(const ShardedArray& array, const Domain& domain) {
    std::int64_t shards = 1;
    for (const DimSharding& dim : array.sharding.dims) shards *= Mesh::size_of(dim.axes);
    of_shard_.resize(static_cast<std::size_t>(shards));
    for (std::size_t position = 0; position < array.on.devices.size(); ++position) {
      std::int64_t shard = 0;
      for (const DimSharding& dim : array.sharding.dims) {
        shard = shard * Mesh::size_of(dim.axes) +
                chunk_at(dim.axes, array.on.mesh, static_cast<std::int64_t>(position));
      }
      const std::int64_t device = array.on.devices[position];
      of_shard_[static_cast<std::size_t>(shard)].devices.push_back({domain(device), device, 0});
    }
    for (Shard& shard : of_shard_) {
      std::stable_sort(shard.devices.begin(), shard.devices.end(),
                       [](const Holder& a, const Holder& b) { return a.domain < b.domain; });
    }
  }

  // The device that gives `target` its piece of the shard.
  std::int64_t pick(std::int64_t shard_number, std::int64_t target, std::int64_t target_domain) {
    Shard& shard = of_shard_[static_cast<std::size_t>(shard_number)];
    if (shard.devices.size() == 1) return shard.devices[0].device;
    const auto [first, last] =
        std::equal_range(shard.devices.begin(), shard.devices.end(), Holder{target_domain, 0, 0},
                         [](const Holder& a, const Holder& b) { return a.domain < b.domain; });
    const auto own =
        std::find_if(first, last, [&](const Holder& holder) { return holder.device == target; });
    if (own != last) return target;
    if (first != last) return take_turns(first, last - first, first->turns);
    return take_turns(shard.devices.begin(), static_cast<std::ptrdiff_t>(shard.devices.size()),
                      shard.turns);
  }

 private:
  struct Holder {
    std::int64_t domain = 0;
    std::int64_t device = 0;
    std::int64_t turns = 0;  // in the first of a domain: what the domain has given to its own
  };
  struct Shard {
    std::vector<Holder> devices;
    std::int64_t turns = 0;  // given to other domains
  };

  static std::int64_t take_turns(std::vector<Holder>::const_iterator first, std::ptrdiff_t count,
                                 std::int64_t& turns) {
    return (first + turns++ % count)->device;
  }

  std::vector<Shard> of_shard_;
};

std::vector<Overlaps> overlaps_by_dimension(const std::vector<std::int64_t>& shape,
                                            const Sharding& source, const Sharding& target) {
  assert(source.partial.empty() && target.partial.empty());
  std::vector<Overlaps> all;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    all.push_back(overlaps_of(shape[d], source.dims[d], target.dims[d]));
  }
  return all;
}

// Calls `visit` with shard and elements for every shard of the source that meets the chunks of one
// target device.
template <class Visit>
void for_each_piece(const std::vector<const std::vector<Overlap>*>& wanted,
                    const std::vector<std::int64_t>& chunks, std::size_t d, std::int64_t shard,
                    std::int64_t elements, const Visit& visit) {
  if (d == wanted.size()) return visit(shard, elements);
  for (const Overlap& overlap : *wanted[d]) {
    for_each_piece(wanted, chunks, d + 1, shard * chunks[d] + overlap.chunk,
                   elements * overlap.size, visit);
  }
}

}  // namespace

bool share_devices(const DeviceMesh& a, const DeviceMesh& b) {
  const std::set<std::int64_t> devices(a.devices.begin(), a.devices.end());
  return std::any_of(b.devices.begin(), b.devices.end(),
                     [&](std::int64_t device) { return devices.count(device) > 0; });
}

DeviceMesh numbered(const Mesh& mesh, std::int64_t first) {
  DeviceMesh result{mesh, std::vector<std::int64_t>(static_cast<std::size_t>(mesh.devices()))};
  std::iota(result.devices.begin(), result.devices.end(), first);
  return result;
}

std::vector<DimRange> index_ranges(const std::vector<std::int64_t>& shape, const Sharding& sharding,
                                   const Mesh& mesh, std::int64_t position) {
  assert(sharding.partial.empty() && sharding.dims.size() == shape.size());
  std::vector<DimRange> ranges;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t chunk = chunk_at(sharding.dims[d].axes, mesh, position);
    ranges.push_back(range_of(shape[d], sharding.dims[d], chunk));
  }
  return ranges;
}

double count_messages(const std::vector<std::int64_t>& shape, const ShardedArray& source,
                      const ShardedArray& target) {
  double count = 1;
  double shards = 1;
  for (const Overlaps& dimension : overlaps_by_dimension(shape, source.sharding, target.sharding)) {
    std::size_t meetings = 0;
    for (const std::vector<Overlap>& chunk : dimension) meetings += chunk.size();
    count *= static_cast<double>(meetings);
    shards *= static_cast<double>(dimension.size());
  }
  return count * static_cast<double>(target.on.devices.size()) / shards;
}

void for_each_message(const std::vector<std::int64_t>& shape, Bytes element,
                      const ShardedArray& source, const ShardedArray& target,
                      const std::function<std::int64_t(std::int64_t device)>& domain,
                      const std::function<void(const Message&)>& visit) {
  const std::vector<Overlaps> all = overlaps_by_dimension(shape, source.sharding, target.sharding);
  std::vector<std::int64_t> chunks;
  for (const DimSharding& dim : source.sharding.dims) chunks.push_back(Mesh::size_of(dim.axes));
  Holders holders(source, domain);
  std::vector<const std::vector<Overlap>*> wanted(shape.size());
  for (std::size_t position = 0; position < target.on.devices.size(); ++position) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t chunk = chunk_at(target.sharding.dims[d].axes, target.on.mesh,
                                          static_cast<std::int64_t>(position));
      wanted[d] = &all[d][static_cast<std::size_t>(chunk)];
    }
    const std::int64_t device = target.on.devices[position];
    const std::int64_t device_domain = domain(device);
    for_each_piece(wanted, chunks, 0, 0, 1, [&](std::int64_t shard, std::int64_t elements) {
      visit({holders.pick(shard, device, device_domain), device, element * elements});
    });
  }
}

}  // namespace shardsim
