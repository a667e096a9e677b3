// How a convolution's window lies over its input.
//
//   window={size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1}
//   dim_labels=b01f_01io->b01f     batch, two spatial dimensions, features
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hlo/cursor.hpp"

namespace shardsim {

struct WindowDimension {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t pad_low = 0;
  std::int64_t base_dilation = 1;
  std::int64_t window_dilation = 1;
};

// One per spatial dimension; empty for a convolution without any. Throws InputError.
[[nodiscard]] std::vector<WindowDimension> parse_window(std::string_view text,
                                                        const HloSource& source);

// Where batch, features and spatial dimensions lie in input, kernel and output.
struct ConvolutionDims {
  std::size_t input_batch = 0;
  std::size_t input_feature = 0;
  std::size_t output_feature = 0;
  std::vector<std::size_t> input_spatial;
  std::vector<std::size_t> output_spatial;
};
[[nodiscard]] ConvolutionDims parse_dim_labels(std::string_view text, const HloSource& source);

// Pairs of an output position and a window position that meet an element of the input.
[[nodiscard]] double valid_positions(const WindowDimension& window, std::int64_t input,
                                     std::int64_t output);

}  // namespace shardsim
