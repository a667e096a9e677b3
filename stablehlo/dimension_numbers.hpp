// Which dimension of a dot or a convolution plays which part, from either spelling of the op.
//
//   batching_dims = [0] x [0], contracting_dims = [2] x [1]
//   dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
#pragma once

#include <cstdint>
#include <vector>

#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {

struct DotDimensions {
  std::vector<int> lhs_batching;
  std::vector<int> rhs_batching;
  std::vector<int> lhs_contracting;
  std::vector<int> rhs_contracting;
};

struct ConvolutionDimensions {
  int input_batch = 0;
  int input_feature = 0;
  int kernel_input = 0;
  int kernel_output = 0;
  int output_batch = 0;
  int output_feature = 0;
  std::vector<int> input_spatial;  // in the order of the spatial numbers 0, 1, ...
  std::vector<int> kernel_spatial;
  std::vector<int> output_spatial;
  std::int64_t feature_groups = 1;
  std::int64_t batch_groups = 1;
};

// Throw InputError: missing, of unequal length, no dimensions of the operands.
[[nodiscard]] DotDimensions dot_dimensions(const OpView& op);
[[nodiscard]] ConvolutionDimensions convolution_dimensions(const OpView& op);

}  // namespace shardsim::stablehlo
