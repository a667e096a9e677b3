// Windows that slide over a tensor, those of convolutions, reduce_window and select_and_scatter,
// from either spelling of the op.
//
//   window = {stride = [2], pad = [[1, 1]], rhs_dilate = [1]}        window_strides = array<i64: 2>
//
// Example: size 3, stride 2, padding 1 and 1 over 8 elements: (1 + 8 + 1 - 3) / 2 + 1 = 4
// positions.
#pragma once

#include <cstdint>
#include <vector>

#include "stablehlo/dimension_numbers.hpp"

namespace shardsim::stablehlo {

struct WindowDim {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t low = 0;  // padding, negative where elements are left out
  std::int64_t high = 0;
  std::int64_t base_dilation = 1;  // interior padding + 1
  std::int64_t window_dilation = 1;
  bool reversed = false;  // of no account for what is read

  friend bool operator==(const WindowDim&, const WindowDim&) = default;
};
using Window = std::vector<WindowDim>;

// By spatial dimension. Throws InputError for strides and dilations below 1, numbers beyond 2^30
// and lists of another length.
[[nodiscard]] Window convolution_window(const OpView& op, const ConvolutionDimensions& numbers);
// Of a reduce_window or select_and_scatter, by dimension of the first operand. Throws the same.
[[nodiscard]] Window reduction_window(const OpView& op);

// How many positions a window has over `input` elements.
[[nodiscard]] std::int64_t positions(const WindowDim& window, std::int64_t input);

}  // namespace shardsim::stablehlo
