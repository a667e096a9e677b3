// A convolution as the partitioner takes it: its dimensions by their part, its windows, and the op
// over other operands.
#pragma once

#include <vector>

#include "spmd/ops/dot_dims.hpp"
#include "spmd/ops/windowed.hpp"
#include "spmd/partitioner.hpp"
#include "stablehlo/dimension_numbers.hpp"

namespace shardsim::spmd {

class Convolution {
 public:
  Convolution(Partitioner& p, const OpView& op);

  [[nodiscard]] const stablehlo::ConvolutionDimensions& numbers() const { return numbers_; }
  [[nodiscard]] const DotDims& dims() const { return dims_; }
  [[nodiscard]] const TensorType& type() const { return type_; }  // of the whole result
  // One per spatial dimension.
  [[nodiscard]] const Window& window() const { return window_; }
  [[nodiscard]] bool is_grouped() const {
    return numbers_.feature_groups > 1 || numbers_.batch_groups > 1;
  }

  // Local operands; of `window` counts the padding of truly spatial dimensions, the windows of the
  // others follow from the operands.
  [[nodiscard]] ValueId make(ValueId lhs, ValueId rhs, const Window& window) const;

 private:
  [[nodiscard]] Window local_window(const Shape& lhs, const Shape& rhs, const Window& window) const;

  Partitioner& p_;
  const OpView& op_;
  stablehlo::ConvolutionDimensions numbers_;
  DotDims dims_;
  TensorType type_;
  Window window_;
};

}  // namespace shardsim::spmd
