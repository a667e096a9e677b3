// What networks over images [batch, channels, height, width] are made of, as torch.nn's modules.
//
//   Convolution  places = (in + 2 padding - kernel) / stride + 1; keeps its input
//   GroupNorm    keeps its input and, of each example and group, mean and 1 / deviation in its type
//   BatchNorm    keeps its input and, of each channel, mean and 1 / deviation in fp32; has running
//                means, which are buffers
//
// Example: ResNet's stem on 8 images of 224 x 224: 7 x 7 of 3 channels to 64, stride 2, padding 3:
// 112 x 112 places, 2 * 8 * 112^2 * 64 * 147 = 1.9 GFLOP.
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

struct Convolution {
  std::string name{};
  std::int64_t out = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  bool bias = true;

  bool operator==(const Convolution&) const = default;
};

Value run(Eager& e, const Convolution& convolution, const Value& x);
Value group_norm(Eager& e, std::string_view name, std::int64_t groups, const Value& x);
Value batch_norm(Eager& e, std::string_view name, const Value& x);

// Pixels as rows [batch, height * width, channels]: a view, whose rows do not lie together.
[[nodiscard]] Value rows_of(const Value& image);
// A linear module that reads such rows: its bias is added apart; with more than one example a copy
// is made of them.
Value run_strided_linear(Eager& e, std::string_view name, const Value& rows, std::int64_t out,
                         bool bias);

}  // namespace shardsim::models
