#include "stablehlo/window.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "base/index.hpp"

namespace shardsim::stablehlo {
namespace {

using Numbers = std::vector<std::int64_t>;

// Keeps products of positions within 64 bits.
constexpr std::int64_t largest = std::int64_t{1} << 30;

struct WindowLists {
  Numbers sizes;
  Numbers strides;
  Numbers padding;  // low and high of each dimension
  Numbers base_dilations;
  Numbers window_dilations;
  Numbers reversals;
};

// A list of `count` numbers, or none: then all are `otherwise`.
std::int64_t entry(const OpView& op, const Numbers& list, std::size_t index, std::size_t count,
                   std::int64_t otherwise) {
  if (list.empty()) return otherwise;
  if (list.size() != count) {
    op.fail(fmt::format("{} numbers where its window needs {}", list.size(), count));
  }
  return list[index];
}

Window window_of(const OpView& op, const WindowLists& lists) {
  Window window;
  const std::size_t count = lists.sizes.size();
  for (std::size_t i = 0; i < count; ++i) {
    window.push_back({.size = lists.sizes[i],
                      .stride = entry(op, lists.strides, i, count, 1),
                      .low = entry(op, lists.padding, 2 * i, 2 * count, 0),
                      .high = entry(op, lists.padding, 2 * i + 1, 2 * count, 0),
                      .base_dilation = entry(op, lists.base_dilations, i, count, 1),
                      .window_dilation = entry(op, lists.window_dilations, i, count, 1),
                      .reversed = entry(op, lists.reversals, i, count, 0) != 0});
    const WindowDim& dim = window.back();
    for (const std::int64_t factor : {dim.stride, dim.base_dilation, dim.window_dilation}) {
      if (factor < 1 || factor > largest) op.fail("unlikely stride or dilation");
    }
    if (std::abs(dim.low) > largest || std::abs(dim.high) > largest) op.fail("unlikely padding");
    if (dim.size < 0 || dim.size > largest) op.fail("unlikely size of its window");
  }
  return window;
}

}  // namespace

Window convolution_window(const OpView& op, const ConvolutionDimensions& numbers) {
  AttributeList named = op.op().attributes;
  if (const Attribute* window = op.attribute({"window"})) {
    named.insert(named.begin(), window->entries.begin(), window->entries.end());
  }
  const auto read = [&](std::string_view printed, std::string_view generic) {
    const bool is_printed = find(named, printed) != nullptr;
    return op.integers(named, is_printed ? printed : generic);
  };
  Numbers sizes;
  for (const int dim : numbers.kernel_spatial) sizes.push_back(op.size(op.operand(1), dim));
  return window_of(op, {std::move(sizes), read("stride", "window_strides"), read("pad", "padding"),
                        read("lhs_dilate", "lhs_dilation"), read("rhs_dilate", "rhs_dilation"),
                        read("reverse", "window_reversal")});
}

Window reduction_window(const OpView& op) {
  Numbers sizes = op.integers({"window_dimensions"});
  if (sizes.size() != op.operand(0).size()) op.fail("window_dimensions do not fit the operand");
  return window_of(op, {std::move(sizes),
                        op.integers_or_none({"window_strides"}),
                        op.integers_or_none({"padding"}),
                        op.integers_or_none({"base_dilations"}),
                        op.integers_or_none({"window_dilations"}),
                        {}});
}

std::int64_t positions(const WindowDim& window, std::int64_t input) {
  if (input == 0) return 0;
  const std::int64_t spread = (input - 1) * window.base_dilation + 1 + window.low + window.high;
  const std::int64_t reach = (window.size - 1) * window.window_dilation + 1;
  return spread < reach ? 0 : (spread - reach) / window.stride + 1;
}

}  // namespace shardsim::stablehlo
