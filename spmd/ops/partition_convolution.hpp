// The ways to split a convolution that a dot does not have.
//
//   input [1,8,1,1] over (b, h, w, f), result likewise, kernel whole: every device gets the rows
//     that its windows reach from its neighbours and convolves its own
//   input and kernel split over the same spatial dimension (gradients of kernels): devices exchange
//     rows of the input and add up their results
//   feature or batch groups: the groups are a batch, each device has some of them
//
// Source: openxla/xla xla/service/spmd/convolution_handler.cc.
#pragma once

#include "spmd/ops/convolution.hpp"
#include "spmd/ops/partition_dot.hpp"

namespace shardsim::spmd {

// For each dimension of the kernel (of the result) the one of the input that lies as it does when
// the kernel's output features (the result's features) go with `group_dim` of the input.
[[nodiscard]] Dims input_of_kernel(const stablehlo::ConvolutionDimensions& numbers,
                                   std::int64_t group_dim, std::int64_t other_dim);
[[nodiscard]] Dims input_of_result(const stablehlo::ConvolutionDimensions& numbers,
                                   std::int64_t group_dim, std::int64_t other_dim);
[[nodiscard]] Dims inverse(const Dims& permutation);

struct ConvolutionAttempt {
  const Convolution& convolution;
  const Dot& dot;
  const Sharded& lhs;
  const Sharded& rhs;
  const DotTarget& target;
};

// The result is split spatially (or in its batch): the input follows, with the rows that windows
// reach into.
[[nodiscard]] DotAttempt split_like_result(const ConvolutionAttempt& attempt);
// Both operands are split, and as one: partial sums.
[[nodiscard]] DotAttempt split_windows(const ConvolutionAttempt& attempt);
// All devices have whole groups of features or of the batch.
[[nodiscard]] DotAttempt split_groups(const ConvolutionAttempt& attempt);
// The same on groups of devices, other dimensions whole; the outer optional is empty without
// feature or batch groups.
[[nodiscard]] std::optional<DotAttempt> group_on_groups(const ConvolutionAttempt& attempt,
                                                        bool keep_groups);

}  // namespace shardsim::spmd
