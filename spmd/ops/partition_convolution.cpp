#include "spmd/ops/partition_convolution.hpp"

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

// Spatial dimensions are split, and neither the batch nor the features on both sides.
bool is_split_spatially(const DotDims& dims, const Sharded& lhs, const Sharded& rhs,
                        const DotTarget& target) {
  const bool spatial = tiles_over(lhs.tiling, dims.spatial, DotTensor::lhs) > 1 ||
                       tiles_over(rhs.tiling, dims.spatial, DotTensor::rhs) > 1 ||
                       tiles_over(target.tiling, dims.spatial, DotTensor::output) > 1;
  const DotTiles tiles = tiles_of(dims, lhs.tiling, rhs.tiling, target.tiling);
  return spatial && tiles.lhs_batch == 1 && tiles.rhs_batch == 1 && tiles.output_batch == 1 &&
         (tiles.lhs_contracting == 1 || tiles.rhs_contracting == 1);
}

std::optional<DotAttempt> try_convolution(const ConvolutionAttempt& attempt, bool keep_groups) {
  const Convolution& convolution = attempt.convolution;
  if (!convolution.is_grouped() &&
      !is_split_spatially(attempt.dot.dims, attempt.lhs, attempt.rhs, attempt.target)) {
    return std::nullopt;
  }
  const Shape& kernel = attempt.rhs.context->builder().shape(attempt.rhs.value);
  if (convolution.numbers().feature_groups > 1 &&
      kernel[at(convolution.numbers().kernel_input)] > 1) {
    return DotAttempt();
  }
  if (convolution.is_grouped()) {
    if (const auto made = split_groups(attempt)) return made;
  }
  if (!attempt.lhs.tiling.is_replicated() && !attempt.rhs.tiling.is_replicated()) {
    if (const auto made = split_windows(attempt)) return made;
  }
  if (!attempt.target.tiling.is_replicated()) {
    if (const auto made = split_like_result(attempt)) return made;
  }
  return group_on_groups(attempt, keep_groups);
}

}  // namespace

void partition_convolution(Partitioner& p, const OpView& op) {
  const Convolution convolution(p, op);
  const Sharded lhs = p.operand(op, 0);
  Sharded rhs = p.operand(op, 1);
  if (lhs.value == rhs.value) rhs.value = p.builder().copy(rhs.value);
  Dot dot;
  dot.dims = convolution.dims();
  dot.type = convolution.type();
  dot.window = convolution.window();
  dot.make = [&](const Sharded& l, const Sharded& r, const Window& window) {
    return convolution.make(l.value, r.value, window);
  };
  dot.try_convolution = [&](const Dot& inner, const Sharded& l, const Sharded& r,
                            const DotTarget& target, bool keep_groups) {
    return try_convolution({convolution, inner, l, r, target}, keep_groups);
  };
  const Tiling tiling = p.tiling_of_result(op, 0);
  const ValueId made = partition_dot(dot, lhs, rhs, {op.result(0), tiling});
  p.set_result(op, 0, {made, op.result(0), tiling, lhs.context});
}

}  // namespace shardsim::spmd
