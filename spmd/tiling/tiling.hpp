// How one tensor lies on the devices of a program: in tiles, each on one or more devices.
//
//   Tiling::tiled({2, 1}, {0, 1, 2, 3, 4, 5, 6, 7})
//     dimension 0 in 2 tiles; devices 0..3 hold the first tile, 4..7 the second (4 replicas)
//
// Device numbers fill an array [tiles..., replicas] row by row, as in HLO's
// {devices=[2,1,4]<=[8] last_tile_dim_replicate}. The replicas of one tile are kept in ascending
// order and a tensor of one tile is `replicated`, so that equal tilings compare equal. A dimension
// that its tiles do not divide has tiles of the size rounded up; the last ones are partly or wholly
// padding. Source: openxla/xla xla/hlo/ir/hlo_sharding.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shardsim::spmd {

using Shape = std::vector<std::int64_t>;
using Dims = std::vector<std::int64_t>;  // numbers of dimensions
// Devices that act together, in the order in which the group counts. All groups of one list have
// the same size.
using DeviceGroups = std::vector<std::vector<int>>;

class Tiling {
 public:
  // Whole on every device.
  Tiling() = default;
  // devices.size() is a multiple of the number of tiles; every device stands in it once.
  [[nodiscard]] static Tiling tiled(Shape tiles, std::vector<int> devices);

  [[nodiscard]] bool is_replicated() const { return devices_.empty(); }
  // More than one device per tile, and more than one tile.
  [[nodiscard]] bool is_partial() const { return replicas_ > 1; }
  [[nodiscard]] std::int64_t tiles(std::int64_t dim) const;    // 1 of a replicated tensor
  [[nodiscard]] const Shape& tiles() const { return tiles_; }  // empty: replicated
  [[nodiscard]] std::int64_t replicas() const { return replicas_; }
  [[nodiscard]] std::int64_t tile_count() const;
  [[nodiscard]] const std::vector<int>& devices() const { return devices_; }
  // [tiles..., replicas], the last only when is_partial().
  [[nodiscard]] Shape extents() const;
  // Calls visit(index, device) in the order of `devices`; an index has one entry per extent.
  void each(const std::function<void(const Dims& index, int device)>& visit) const;
  [[nodiscard]] int device_at(const Dims& index) const;

  friend bool operator==(const Tiling&, const Tiling&) = default;
  friend auto operator<=>(const Tiling&, const Tiling&) = default;

 private:
  Shape tiles_;
  std::int64_t replicas_ = 1;
  std::vector<int> devices_;
};

// "[2,1,4]<=..." for messages: {devices=[2,1,4]0,1,2,... last_tile_dim_replicate}.
[[nodiscard]] std::string text_of(const Tiling& tiling);

[[nodiscard]] std::int64_t product(const Shape& sizes);
[[nodiscard]] std::int64_t ceil_div(std::int64_t value, std::int64_t divisor);
[[nodiscard]] std::int64_t round_up(std::int64_t value, std::int64_t multiple);
[[nodiscard]] bool holds(const Dims& dims, std::int64_t dim);
[[nodiscard]] Dims iota_dims(std::size_t count);

// The tile that one device holds: every dimension divided by its tiles, rounded up.
[[nodiscard]] Shape shard_shape(const Shape& shape, const Tiling& tiling);
[[nodiscard]] bool divides_evenly(const Shape& shape, const Tiling& tiling);

// Dimension i of the result is dimension permutation[i]. Of a partial tiling the permutation may
// have one entry more, which moves the replicas to a dimension and a dimension to the replicas.
[[nodiscard]] Tiling transpose(const Tiling& tiling, const Dims& permutation);
// The same tiling of an array [extents..., replicas] that is seen with other extents: the devices
// stay in their order. The last extent is that of replicas if `partial`.
[[nodiscard]] Tiling reshape_extents(const Tiling& tiling, const Shape& extents, bool partial);
// What was split over `dims` is whole: their tiles become replicas.
[[nodiscard]] Tiling replicate_dims(const Tiling& tiling, const Dims& dims);
[[nodiscard]] Tiling replicate_all_but(const Tiling& tiling, const Dims& dims);
// Dimensions of one tile that are taken out of the tensor, or put in before position `dim`.
[[nodiscard]] Tiling remove_dims(const Tiling& tiling, const Dims& dims);
[[nodiscard]] Tiling insert_dim(const Tiling& tiling, std::int64_t dim);
// Dimension `dim` of t tiles becomes two, of `major` and of t / major tiles; and back.
[[nodiscard]] Tiling split_dim(const Tiling& tiling, std::int64_t dim, std::int64_t major);
[[nodiscard]] Tiling merge_dim(const Tiling& tiling, std::int64_t dim);

// The devices that differ in the tiles of `dims` only, one group for each place in the others; in a
// group in the order of the tiles. Of a partial tiling the number of its dimensions stands for the
// replicas.
[[nodiscard]] DeviceGroups groups_along(const Tiling& tiling, const Dims& dims);

// A tiling seen from inside groups of devices: `dims` (or their major parts of `sizes` tiles each)
// tell the groups apart, and `tiling` is what is left within one, in numbers local to it.
//
//   [2,4] over 0..7 grouped by dimension 0: groups {0..3} {4..7}, tiling [1,4] over 0..3
struct GroupedTiling {
  DeviceGroups groups;
  Dims dims;
  Shape sizes;
  std::size_t rank = 0;  // of the tensor
  Tiling tiling;
};
[[nodiscard]] GroupedTiling group_by(const Tiling& tiling, const Dims& dims);
[[nodiscard]] GroupedTiling group_by(const Tiling& tiling, const Dims& dims, const Shape& sizes);
// The same tiling in the groups of `reference`, numbered as there. Where the groups are others, the
// numbers are taken as they are: ungroup() then gives another tiling, from which one permute leads
// on.
[[nodiscard]] GroupedTiling align_groups(GroupedTiling grouped, const GroupedTiling& reference,
                                         bool ignore_order = false);
// The inverse of group_by.
[[nodiscard]] Tiling ungroup(const GroupedTiling& grouped);

}  // namespace shardsim::spmd
