// Where a dot is made finer than its result is to be, and brought to that afterwards.
//
//   lhs [{}, {"x"}], rhs [{"x"}, {"y"}], result [{}, {"x"}]
//     rhs gathered over y, result reduce-scattered over x:  2 ops, whole columns on every device
//     result made as [{}, {"y"}], then resharded:           partial sums of a quarter of it
//
// Shardy decides this before XLA partitions (openxla/shardy
// shardy/dialect/sdy/transforms/export/insert_explicit_reshards.cc, processDot): operands agree
// wherever they meet, exactly one dimension of the result lies otherwise than in the operand, over
// the axes that are summed over, and the result is no larger than that operand.
#pragma once

#include <optional>

#include "spmd/ops/dot_dims.hpp"
#include "spmd/sharded.hpp"

namespace shardsim::spmd {

// The tiling that the dot is to be made in; nothing: as its result says.
[[nodiscard]] std::optional<Tiling> finer_result(const stablehlo::OpView& op, const DotDims& dims,
                                                 const Tiling& lhs, const Tiling& rhs,
                                                 const Tiling& result);

}  // namespace shardsim::spmd
