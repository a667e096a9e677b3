// The shardings of an op's tensors seen from its factors, and back.
//
//   reshape 2x4 -> 8 with rule ([i, j])->([ij]) {i=2, j=4}, result sharded {"x"} with x=4:
//     result   i: x:(1)2   j: x:(2)2       the axis is cut where the factor is full
//     operand  i, j: nothing, open         which propagation may fill with the same
//   back to dimensions: operand {"x":(1)2}, {"x":(2)2}
//
// A factor that is not the last of its dimension takes axes as long as they divide it; axes that
// share no divisor with what is left of it are its overflow: they stay where they are, and no
// later factor of the dimension is split. Back in dimensions a factor that is not full ends its
// dimension, as what comes after would need strides.
// Source: openxla/shardy sharding_projection.h.
#pragma once

#include <vector>

#include "spmd/tiling/tensor_sharding.hpp"
#include "stablehlo/factor_rule.hpp"

namespace shardsim::spmd {

struct FactorAxes {
  bool present = false;  // the tensor has the factor
  bool closed = false;
  bool minor_most = false;  // in its dimension
  Axes axes;
  Axes overflow;
};

struct TensorProjection {
  std::vector<FactorAxes> factors;  // by factor of the rule
  Axes replicated;
  Axes unreduced;
};

struct Projection {
  std::vector<TensorProjection> operands;
  std::vector<TensorProjection> results;
};

// `sharding` null: nothing is said, all is open.
[[nodiscard]] TensorProjection project(const stablehlo::TensorFactors& tensor,
                                       const std::vector<stablehlo::Factor>& factors,
                                       const TensorSharding* sharding);
[[nodiscard]] TensorSharding unproject(const TensorProjection& projection,
                                       const stablehlo::TensorFactors& tensor,
                                       const std::vector<stablehlo::Factor>& factors, int mesh);

}  // namespace shardsim::spmd
