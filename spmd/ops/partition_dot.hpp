// How a dot or a convolution is split: which operand is gathered, where partial sums are added up,
// what happens within groups of devices.
//
//   lhs [8,1] over (m, k), rhs [1,8] over (k, n), result [8,1]: rows stay, rhs is gathered
//   lhs [1,8], rhs [8,1], result whole:                         partial sums, one all-reduce
//   lhs [2,4], rhs [4,1], result [2,1]:                         groups of 4 by rows; within one, as
//                                                               before
//
// Tried in this order, first as long as no operand has to change its groups of devices, then
// without that condition:
//   1. all devices split one part (batch, or free of one side) in operands and result
//   2. devices are grouped by batch dimensions, and what is left is tried again within the groups
//   3. ... by dimensions free on one side, the one where less of the other side is replicated
//   4. ... by contracting dimensions: the local result is summed over the groups
//   5. ... by the replicas of the result when both operands are whole
//   6. all devices split one part of the result: operands are resharded to it
// and else operands are brought to what the result says, contracting dimensions whole.
//
// "Devices" are those of the operands' context; all tilings are in its numbers. XLA can also write
// dots as loops that overlap pieces with transfers (windowed einsum); its default threshold keeps
// that off, and it is not here. Source: openxla/xla xla/service/spmd/dot_handler.cc.
#pragma once

#include <functional>
#include <optional>

#include "spmd/ops/dot_dims.hpp"
#include "spmd/ops/windowed.hpp"
#include "spmd/sharded.hpp"

namespace shardsim::spmd {

struct Dot;

// The result: what it is as a whole within the groups of the context, and the tiling asked for.
struct DotTarget {
  Shape shape;
  Tiling tiling;
};

// Writes the op over local operands; windows are those of the spatial dimensions of a convolution.
using MakeDot =
    std::function<ValueId(const Sharded& lhs, const Sharded& rhs, const Window& window)>;

// One way to split it; the local result has the tiling of the target. Nothing: another way.
using DotAttempt = std::optional<ValueId>;

// What only convolutions need to try; the outer optional is empty where a dot's ways are next, the
// inner one where this round of attempts ends.
using TryConvolution =
    std::function<std::optional<DotAttempt>(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                                            const DotTarget& target, bool keep_groups)>;

struct Dot {
  DotDims dims;
  TensorType type;  // of the whole result
  MakeDot make;
  Window window;
  TryConvolution try_convolution;  // none of dots
};

[[nodiscard]] ValueId partition_dot(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                                    const DotTarget& target);

// The single ways. `keep_groups`: fail rather than reshard an operand to other groups.
// All devices split one part; operands are resharded to the result only where `may_reshard`.
[[nodiscard]] DotAttempt split_one_part(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                                        const DotTarget& target, bool may_reshard);
[[nodiscard]] DotAttempt group_on_batch(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                                        const DotTarget& target, bool keep_groups);
[[nodiscard]] DotAttempt group_on_free(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                                       const DotTarget& target, bool keep_groups);
[[nodiscard]] DotAttempt group_on_contracting(const Dot& dot, const Sharded& lhs,
                                              const Sharded& rhs, const DotTarget& target,
                                              bool keep_groups);

// What an operand must be for the result: as split as that in the dimensions they share, and, when
// `other` is given, as that operand where this says more. `operand`: lhs or rhs.
[[nodiscard]] Tiling operand_tiling(const DotDims& dims, DotTensor operand, const Tiling& result,
                                    const Tiling* other);

// A value within groups: what remains of its shape and tiling there.
[[nodiscard]] Shape shape_within(const GroupedTiling& grouped, const Shape& shape);
[[nodiscard]] Sharded within(const Sharded& value, const GroupedTiling& grouped);
[[nodiscard]] std::int64_t bytes_of(std::int64_t elements, const TensorType& type);
// Bytes of a device's part, and of the whole.
[[nodiscard]] std::int64_t local_bytes(const Sharded& value);
[[nodiscard]] std::int64_t whole_bytes(const Sharded& value);
// Sums over the devices that split `dims` in `tiling`; logical values are combined by "or".
[[nodiscard]] ValueId sum_along(Context& context, ValueId value, const Tiling& tiling,
                                const Dims& dims);

}  // namespace shardsim::spmd
