// The sharding of a tensor on a mesh, and the arithmetic of shards.
//
//   W[4096, 14336] with dims {{fsdp}, {model}} on mesh fsdp=8, model=4
//     shard shape [512, 3584]; stored once per 32 devices
//   Y[b, s, h] with partial {model}: every device of a model group holds a full-size summand
//
// A dimension that its axes do not divide is padded as XLA and FSDP2 pad: each shard has
// ceil(size / shards) rows, so 50257 rows over 8 devices take 6283 on each.
//
// `blocks` says that a dimension is made of that many equal parts, each split over the axes on its
// own: Megatron's fused QKV, where every device holds its heads of q, of k and of v. 1 is the
// contiguous split of a PartitionSpec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/mesh.hpp"

namespace shardsim {

using AxisList = std::vector<AxisRef>;  // major to minor

struct DimSharding {
  AxisList axes;
  std::int64_t blocks = 1;
  friend bool operator==(const DimSharding&, const DimSharding&) = default;
};

struct Sharding {
  std::vector<DimSharding> dims;  // one per tensor dimension
  AxisList partial;               // sorted: a set
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

[[nodiscard]] Sharding replicated(std::size_t rank);

// Do the two parts of axes share devices' coordinates? x overlaps x:(1)2; x:(1)2 and x:(2)4 do not;
// x:(1)2 and x:(3)2 do, when x has 6 devices: no factoring of 6 has both.
[[nodiscard]] bool overlap(const AxisRef& a, const AxisRef& b);
[[nodiscard]] bool overlaps_any(const AxisRef& axis, const AxisList& list);
// Whether each of `axes` overlaps one of `all`.
[[nodiscard]] bool is_within(const AxisList& axes, const AxisList& all);
// The axes of `mesh` with these names, all known. Those of one device split nothing and are left
// out.
[[nodiscard]] AxisList splitting_axes(const std::vector<std::string>& names, const Mesh& mesh);
[[nodiscard]] bool contains(const AxisList& list, const AxisRef& axis);
[[nodiscard]] bool is_prefix(const AxisList& prefix, const AxisList& list);
// Joins neighbouring parts of one axis: [x:(1)2, x:(2)4] -> [x] when x has 8 devices.
[[nodiscard]] AxisList merged(const AxisList& list);
// All axes that split a dimension, in order.
[[nodiscard]] AxisList split_axes(const Sharding& sharding);
// The sharding with every axis in `axes` taken out of its dimensions.
[[nodiscard]] Sharding without(const Sharding& sharding, const AxisList& axes);

// Without the axes of one device, which split nothing.
[[nodiscard]] Sharding without_unit_axes(const Sharding& sharding);

// Size of a shard along one dimension: ceil(size / shards), in whole blocks.
[[nodiscard]] std::int64_t shard_size(std::int64_t size, const DimSharding& dim);
[[nodiscard]] std::int64_t shard_elements(const std::vector<std::int64_t>& shape,
                                          const Sharding& sharding);

// "[fsdp, model+data, -]", with "partial(model)" appended; "-" is whole.
[[nodiscard]] std::string to_string(const Sharding& sharding, const Mesh& mesh);

}  // namespace shardsim
