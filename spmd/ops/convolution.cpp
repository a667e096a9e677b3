#include "spmd/ops/convolution.hpp"

#include <algorithm>
#include <array>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

// A batch dimension can be written as a spatial one: a window as wide as the dimension, moved by
// one less over an input that is spread out as far.
bool is_batch(const WindowDim& window, std::int64_t input) {
  const std::int64_t step = std::max<std::int64_t>(1, input - 1);
  if (input == window.size && input == window.base_dilation && !window.reversed &&
      window.low == 0 && window.high == 0) {
    return (window.stride == step && window.window_dilation == 1) ||
           (window.window_dilation == step && window.stride == 1);
  }
  return window.size == input && window.high == input - 1 && window.low == input - 1 &&
         window.reversed && window.window_dilation == 1 && window.stride == input &&
         window.base_dilation == input - 1;
}

std::vector<DotDim>& part_of(DotDims& dims, const WindowDim& window, std::int64_t input,
                             std::int64_t kernel) {
  if (is_batch(window, input)) return dims.batch;
  const bool padded = window.low != 0 || window.high != 0;
  if (window.base_dilation != 1 || window.window_dilation != 1) return dims.spatial;
  if (input == window.size && !padded && !window.reversed) return dims.contracting;
  if (window.stride != 1) return dims.spatial;
  if (kernel == 1 && window.size == 1 && !padded && !window.reversed) return dims.lhs_free;
  if (input == 1 && window.size == kernel && window.low == kernel - 1 &&
      window.high == kernel - 1 && window.reversed) {
    return dims.rhs_free;
  }
  return dims.spatial;
}

stablehlo::Attribute list_of(const Window& window, std::int64_t WindowDim::*field) {
  std::vector<std::int64_t> values;
  for (const WindowDim& dim : window) values.push_back(dim.*field);
  return integers_attribute(values);
}

}  // namespace

Convolution::Convolution(Partitioner& p, const OpView& op)
    : p_(p),
      op_(op),
      numbers_(stablehlo::convolution_dimensions(op)),
      type_(op.function().type_of(op.op().results.front())),
      window_(stablehlo::convolution_window(op, numbers_)) {
  dims_.lhs_rank = dims_.rhs_rank = dims_.output_rank = op.result(0).size();
  dims_.lhs_free.push_back({numbers_.input_batch, -1, numbers_.output_batch, -1});
  dims_.rhs_free.push_back({-1, numbers_.kernel_output, numbers_.output_feature, -1});
  dims_.contracting.push_back({numbers_.input_feature, numbers_.kernel_input, -1, -1});
  for (std::size_t i = 0; i < numbers_.input_spatial.size(); ++i) {
    const std::int64_t input = op.operand(0)[at(numbers_.input_spatial[i])];
    const std::int64_t kernel = op.operand(1)[at(numbers_.kernel_spatial[i])];
    part_of(dims_, window_[i], input, kernel)
        .push_back({numbers_.input_spatial[i], numbers_.kernel_spatial[i],
                    numbers_.output_spatial[i], static_cast<std::int64_t>(i)});
  }
}

Window Convolution::local_window(const Shape& lhs, const Shape& rhs, const Window& window) const {
  Window local = window_;
  for (std::size_t i = 0; i < local.size(); ++i) {
    local[i].size = rhs[at(numbers_.kernel_spatial[i])];
  }
  for (const DotDim& dim : dims_.batch) {
    WindowDim& batch = local[at(dim.spatial)];
    batch.size = batch.base_dilation = lhs[at(dim.lhs)];
    batch.stride = std::max<std::int64_t>(1, batch.size - 1);
  }
  for (const DotDim& dim : dims_.rhs_free) {
    if (dim.spatial < 0) continue;
    local[at(dim.spatial)].low = local[at(dim.spatial)].high = local[at(dim.spatial)].size - 1;
  }
  for (const DotDim& dim : dims_.spatial) {
    local[at(dim.spatial)].low = window[at(dim.spatial)].low;
    local[at(dim.spatial)].high = window[at(dim.spatial)].high;
  }
  return local;
}

ValueId Convolution::make(ValueId lhs, ValueId rhs, const Window& window) const {
  Builder& builder = p_.builder();
  const Shape lhs_shape = builder.shape(lhs);
  const Shape rhs_shape = builder.shape(rhs);
  const Window local = local_window(lhs_shape, rhs_shape, window);
  std::int64_t feature_groups = numbers_.feature_groups;
  if (feature_groups > 1) {
    feature_groups = lhs_shape[at(numbers_.input_feature)] / rhs_shape[at(numbers_.kernel_input)];
  }
  std::int64_t batch_groups = numbers_.batch_groups;
  const std::int64_t batch = lhs_shape[at(numbers_.input_batch)];
  if (batch_groups > 1) {
    // Tiles hold whole groups.
    const std::int64_t whole = op_.operand(0)[at(numbers_.input_batch)];
    batch_groups = std::max<std::int64_t>(1, batch_groups * batch / whole);
  }

  TensorType type = type_;
  type.dims[at(numbers_.output_batch)] = batch / batch_groups;
  type.dims[at(numbers_.output_feature)] = rhs_shape[at(numbers_.kernel_output)];
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> backwards;
  for (std::size_t i = 0; i < local.size(); ++i) {
    type.dims[at(numbers_.output_spatial[i])] =
        stablehlo::positions(local[i], lhs_shape[at(numbers_.input_spatial[i])]);
    padding.push_back(local[i].low);
    padding.push_back(local[i].high);
    backwards.push_back(local[i].reversed ? 1 : 0);
  }

  constexpr std::array<std::string_view, 8> replaced = {
      "window",          "window_strides",      "padding",          "lhs_dilation", "rhs_dilation",
      "window_reversal", "feature_group_count", "batch_group_count"};
  AttributeList attributes;
  for (const auto& attribute : op_.op().attributes) {
    const bool kept =
        std::find(replaced.begin(), replaced.end(), attribute.name) == replaced.end() &&
        attribute.name.rfind("sdy.", 0) != 0;
    if (kept) attributes.push_back(attribute);
  }
  attributes.push_back({"window_strides", list_of(local, &WindowDim::stride)});
  attributes.push_back({"padding", integers_attribute(padding)});
  attributes.push_back({"lhs_dilation", list_of(local, &WindowDim::base_dilation)});
  attributes.push_back({"rhs_dilation", list_of(local, &WindowDim::window_dilation)});
  attributes.push_back({"window_reversal", integers_attribute(backwards)});
  attributes.push_back({"feature_group_count", integer_attribute(feature_groups)});
  attributes.push_back({"batch_group_count", integer_attribute(batch_groups)});
  return builder.add(op_.op().name, {lhs, rhs}, std::move(type), std::move(attributes));
}

}  // namespace shardsim::spmd
