// What jax.sharding.NamedSharding answers about an array: who holds which part.
//
//   mesh x=4, y=2; P(y, x) on [8, 4]; devices 0..7 row by row of the mesh
//     shards per dimension [2, 4], shard shape [4, 1], 1 replica per shard
//     device 1 = (x 0, y 1) holds [4, 8) x [0, 1)
//     tile assignment [2, 4], devices 0 2 4 6 1 3 5 7
//
// A dimension over axes (a1 ... ak) is cut into size(a1) * ... * size(ak) chunks, numbered with a1
// most major: the order of the spec counts, not that of the mesh. Axes that no dimension names
// replicate. jit and device_put want chunks that divide (check_divides); inside XLA a chunk is
// ceil(size / shards) long, and the last chunks are short or empty: 5 over 4 is 2, 2, 1, 0.
//
// Source: jax-ml/jax jax/_src/named_sharding.py and sharding.py at cec06d1 (0.11.1); uneven chunks:
// "GSPMD: General and Scalable Parallelization for ML Computation Graphs", arXiv 2105.04663.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "plan/mesh.hpp"
#include "sharding/rule_error.hpp"
#include "sharding/sharding.hpp"

namespace shardsim {

// A dimension that its shards do not divide; in JAX a ValueError.
class IndivisibleError : public RuleError {
 public:
  IndivisibleError(const Place& place, std::size_t dimension, std::int64_t size,
                   std::vector<std::int64_t> shards_per_dim);

  [[nodiscard]] std::size_t dimension() const { return dimension_; }
  [[nodiscard]] const std::vector<std::int64_t>& shards_per_dim() const { return shards_per_dim_; }

 private:
  std::size_t dimension_;
  std::vector<std::int64_t> shards_per_dim_;
};

[[nodiscard]] std::vector<std::int64_t> shards_per_dim(const Sharding& sharding);
// Throws IndivisibleError for the first dimension that does not divide.
void check_divides(const std::vector<std::int64_t>& shape, const Sharding& sharding,
                   const Place& place);
// The largest shard: with padding, where a dimension does not divide.
[[nodiscard]] std::vector<std::int64_t> shard_shape(const std::vector<std::int64_t>& shape,
                                                    const Sharding& sharding);
// The sizes of all chunks of one dimension, without padding: they add up to `size`.
[[nodiscard]] std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::int64_t shards);

// No dimension is cut; axes of one device do not count.
[[nodiscard]] bool is_fully_replicated(const Sharding& sharding);
[[nodiscard]] std::int64_t replicas_per_shard(const Sharding& sharding, const Mesh& mesh);

// The part of one dimension that a device holds.
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;         // not included; begin == end: nothing but padding
  std::int64_t blocks = 1;      // with DimSharding::blocks the range repeats in each of the blocks:
  std::int64_t block_size = 0;  // begin + b * block_size for b in [0, blocks)
  friend auto operator<=>(const IndexRange&, const IndexRange&) = default;
};

// Who holds what of one tensor. Holds no device tables: a device's ranges cost O(rank + axes).
class DeviceIndex {
 public:
  DeviceIndex(const std::vector<std::int64_t>& shape, const Sharding& sharding, const Mesh& mesh);

  [[nodiscard]] std::int64_t devices() const { return devices_; }
  // Is the dimension cut at all? JAX answers slice(None) for one that is not.
  [[nodiscard]] bool is_cut(std::size_t dimension) const;
  // Which chunk of the dimension the device holds.
  [[nodiscard]] std::int64_t chunk(std::int64_t device, std::size_t dimension) const;
  // One range per dimension.
  [[nodiscard]] std::vector<IndexRange> ranges(std::int64_t device) const;
  // By device: how many devices before it hold the same ranges. O(devices * log(devices) * rank).
  [[nodiscard]] std::vector<std::int64_t> replica_ids() const;

 private:
  struct Axis {
    std::int64_t size;    // chunks
    std::int64_t stride;  // device numbers from one to the next
  };
  struct Dimension {
    std::int64_t size;
    std::int64_t blocks;
    std::int64_t shards;
    std::vector<Axis> axes;  // major to minor
  };
  std::int64_t devices_;
  std::vector<Dimension> dims_;
};

// The tile assignment of the OpSharding that XLA is given: chunks per dimension, followed by the
// number of replicas where there is more than one, and the devices of the tiles in row-major order.
// Nothing for a fully replicated array.
struct TileAssignment {
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> devices;
};
[[nodiscard]] std::optional<TileAssignment> tile_assignment(const Sharding& sharding,
                                                            const Mesh& mesh);

// Does every device hold the same part under both? The meshes may differ, not their number of
// devices.
[[nodiscard]] bool hold_same_parts(const DeviceIndex& a, const DeviceIndex& b);

}  // namespace shardsim
