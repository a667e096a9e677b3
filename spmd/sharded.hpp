// A value of the program and the value of the per-device program that holds its tile, and what it
// takes to bring it to another tiling.
//
//   Sharded w{value, {1024, 4096}, tiling [2,4]};      local tensor<512x1024>
//   Sharded whole = reshard(w, Tiling());              all-gather over dimension 1, then 0
//
// What moves and in which order is XLA's SpmdPartitioner
// (openxla/xla xla/service/spmd/spmd_partitioner.cc); the sequence of collectives is a fact that
// users see in their dumps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "spmd/builder.hpp"
#include "spmd/tiling/axis_tiling.hpp"
#include "spmd/tiling/tiling.hpp"

namespace shardsim::spmd {

class Context;

struct Sharded {
  ValueId value = -1;
  Shape shape;  // of the whole tensor
  Tiling tiling;
  Context* context = nullptr;

  [[nodiscard]] std::int64_t tiles(std::int64_t dim) const { return tiling.tiles(dim); }
};

// Where ops are written and which devices tilings number: all of the program, or, inside groups,
// the places 0..n-1 of each group. One per region and grouping; remembers what was resharded.
class Context {
 public:
  // All devices, each under its own number.
  Context(Builder& builder, int devices);
  Context(Builder& builder, DeviceGroups groups);

  [[nodiscard]] Builder& builder() const { return *builder_; }
  [[nodiscard]] int devices() const { return static_cast<int>(groups_.front().size()); }
  // Device numbers of this context, to those of the program, once per group of the context.
  [[nodiscard]] DeviceGroups to_program(const DeviceGroups& local) const;
  [[nodiscard]] std::vector<std::pair<int, int>> to_program(
      const std::vector<std::pair<int, int>>& local) const;
  // The context inside groups of this one's devices; the same groups give the same context.
  [[nodiscard]] Context& grouped(const DeviceGroups& local);

  // The axes that tilings are told by in reasons; null within groups, which have none.
  std::shared_ptr<const DeviceMesh> mesh;
  // The radices of a device number, where resharding may go other ways than XLA's
  // (reshard_search.hpp); empty: it goes XLA's.
  std::vector<std::int64_t> digits;

  // What `value` was resharded to before.
  std::map<ValueId, std::map<Tiling, Sharded>> cache;

 private:
  Builder* builder_;
  DeviceGroups groups_;
  std::map<DeviceGroups, std::unique_ptr<Context>> grouped_;
};

[[nodiscard]] Sharded reshard(const Sharded& from, const Tiling& target);
[[nodiscard]] Sharded replicate(const Sharded& from);
// Elements beyond the end of uneven dimensions become `padding` (a scalar): needed before sums,
// windows and the like. Dimensions in `left_padded` have their padding in front; those in `skipped`
// are left as they are.
[[nodiscard]] Sharded pad_with(const Sharded& value, ValueId padding, const Dims& left_padded = {},
                               const Dims& skipped = {});
[[nodiscard]] Sharded pad_with_zero(const Sharded& value, const Dims& left_padded = {},
                                    const Dims& skipped = {});

// Collectives; groups and devices in the numbers of the context.
[[nodiscard]] ValueId all_gather(Context& context, ValueId operand, std::int64_t dim,
                                 const DeviceGroups& groups);
// `reduction`: "add", "max", ... or the name of an op.
[[nodiscard]] ValueId all_reduce(Context& context, ValueId operand, const DeviceGroups& groups,
                                 std::string_view reduction);
// Splits dimension `dim` over the group and puts what arrives in its place: shape unchanged.
[[nodiscard]] ValueId all_to_all(Context& context, ValueId operand, std::int64_t dim,
                                 const DeviceGroups& groups);
[[nodiscard]] ValueId collective_permute(Context& context, ValueId operand,
                                         const std::vector<std::pair<int, int>>& source_targets);

// One all-gather per dimension, the last dimension first.
[[nodiscard]] ValueId all_gather_shards(Context& context, ValueId operand, const Tiling& tiling,
                                        const Dims& dims);
// One all-reduce per dimension of more than one tile, the last first.
[[nodiscard]] ValueId all_reduce_along(Context& context, ValueId operand, const Tiling& tiling,
                                       const Dims& dims, std::string_view reduction);

// Types that shardsim does not know count as four bytes.
[[nodiscard]] double element_bytes(const TensorType& type);

// A scalar that differs by device: `values` has one for each device of the context, the same in
// every group.
[[nodiscard]] ValueId scalar_by_device(Context& context, const std::vector<std::int64_t>& values,
                                       const TensorType& scalar);
// Where this device's tile begins in each dimension; a constant 0 where there is one tile. `dims`:
// only these, 0 elsewhere.
[[nodiscard]] std::vector<ValueId> tile_offsets(Context& context, const Shape& shape,
                                                const Tiling& tiling);
[[nodiscard]] std::vector<ValueId> tile_offsets(Context& context, const Shape& shape,
                                                const Tiling& tiling, const Dims& dims);
// Which tile this device has in dimension `dim`: 0, 1, ...
[[nodiscard]] ValueId tile_ordinal(Context& context, const Tiling& tiling, std::int64_t dim);

}  // namespace shardsim::spmd
