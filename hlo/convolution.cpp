#include "hlo/convolution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "hlo/shape.hpp"

namespace shardsim {
namespace {

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

void set_field(std::string_view key, std::string_view value, WindowDimension& dim,
               const HloSource& source) {
  if (key == "pad") {
    dim.pad_low = parse_integer(value.substr(0, value.find('_')), source);
    return;
  }
  const std::int64_t number = parse_integer(value, source);
  const bool positive = number > 0 && number < (std::int64_t{1} << 31);
  if (key != "rhs_reversal" && !positive) source.fail(value, "a window's sizes are positive");
  if (key == "size") dim.size = number;
  if (key == "stride") dim.stride = number;
  if (key == "lhs_dilate") dim.base_dilation = number;
  if (key == "rhs_dilate") dim.window_dilation = number;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

std::size_t find_label(std::string_view labels, char label, const HloSource& source) {
  const std::size_t at = labels.find(label);
  if (at == std::string_view::npos) {
    source.fail(labels, fmt::format("dim_labels without \"{}\"", label));
  }
  return at;
}

}  // namespace

std::vector<WindowDimension> parse_window(std::string_view text, const HloSource& source) {
  std::vector<WindowDimension> dims;
  for (const std::string_view field : split_at(without_brackets(text), ' ')) {
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    const auto values = split_at(field.substr(equals + 1), 'x');
    if (dims.empty()) dims.resize(values.size());
    if (dims.size() != values.size()) source.fail(text, "a window of unequal dimensions");
    for (std::size_t i = 0; i < values.size(); ++i) {
      set_field(field.substr(0, equals), values[i], dims[i], source);
    }
  }
  return dims;
}

ConvolutionDims parse_dim_labels(std::string_view text, const HloSource& source) {
  const std::size_t underscore = text.find('_');
  const std::size_t arrow = text.find("->");
  if (underscore == std::string_view::npos || arrow == std::string_view::npos ||
      arrow < underscore) {
    source.fail(text, fmt::format("expected dim_labels=input_kernel->output, found {}", text));
  }
  const std::string_view input = text.substr(0, underscore);
  const std::string_view output = text.substr(arrow + 2);
  ConvolutionDims dims;
  dims.input_batch = find_label(input, 'b', source);
  dims.input_feature = find_label(input, 'f', source);
  dims.output_feature = find_label(output, 'f', source);
  for (char digit = '0'; digit <= '9' && input.find(digit) != std::string_view::npos; ++digit) {
    dims.input_spatial.push_back(find_label(input, digit, source));
    dims.output_spatial.push_back(find_label(output, digit, source));
  }
  return dims;
}

double valid_positions(const WindowDimension& window, std::int64_t input, std::int64_t output) {
  if (input <= 0 || output <= 0) return 0;
  // Output position o and window position k meet undilated position o * stride + shift.
  const std::int64_t last = (input - 1) * window.base_dilation;
  double count = 0;
  for (std::int64_t k = 0; k < window.size; ++k) {
    const std::int64_t shift = k * window.window_dilation - window.pad_low;
    const std::int64_t from = std::max<std::int64_t>(0, -floor_div(shift, window.stride));
    const std::int64_t to = std::min(output - 1, floor_div(last - shift, window.stride));
    if (to < from) continue;
    if (window.base_dilation == 1) {
      count += static_cast<double>(to - from + 1);
    } else if (window.stride == 1) {
      const std::int64_t low = from + shift;
      const std::int64_t high = to + shift;
      count += static_cast<double>(floor_div(high, window.base_dilation) -
                                   floor_div(low - 1, window.base_dilation));
    } else {
      for (std::int64_t o = from; o <= to; ++o) {
        if ((o * window.stride + shift) % window.base_dilation == 0) ++count;
      }
    }
  }
  return count;
}

}  // namespace shardsim
