#include "stablehlo/verify_dims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/op_rules.hpp"
#include "stablehlo/rules.hpp"
#include "stablehlo/window.hpp"

namespace shardsim::stablehlo {
namespace {

using Dims = std::vector<std::int64_t>;

// One number for each dimension.
Dims per_dim(const OpView& op, std::initializer_list<std::string_view> names, std::size_t rank) {
  Dims numbers = op.integers(names);
  if (numbers.size() != rank) {
    op.fail(
        fmt::format("{} has {} numbers for {} dimensions", *names.begin(), numbers.size(), rank));
  }
  return numbers;
}

void check_result(const OpView& op, const Shape& expected) {
  if (op.result(0) != expected) {
    op.fail(fmt::format("its result is [{}], not [{}]", fmt::join(expected, ", "),
                        fmt::join(op.result(0), ", ")));
  }
}

void check_slice(const OpView& op) {
  const Shape& shape = op.operand(0);
  const Dims starts = per_dim(op, {"start_indices"}, shape.size());
  const Dims limits = per_dim(op, {"limit_indices"}, shape.size());
  const Dims strides = per_dim(op, {"strides"}, shape.size());
  Shape sliced;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (starts[i] < 0 || limits[i] < starts[i] || limits[i] > shape[i] || strides[i] < 1) {
      op.fail(fmt::format("no slice [{}:{}:{}] of {} elements in dimension {}", starts[i],
                          limits[i], strides[i], shape[i], i));
    }
    sliced.push_back((limits[i] - starts[i]) / strides[i] +
                     ((limits[i] - starts[i]) % strides[i] != 0 ? 1 : 0));
  }
  check_result(op, sliced);
}

// Low and high may be negative, which takes elements away.
void check_pad(const OpView& op) {
  constexpr std::int64_t most = std::int64_t{1} << 40;  // elements; sums stay far from overflow
  const Shape& shape = op.operand(0);
  const Dims low = per_dim(op, {"low", "edge_padding_low"}, shape.size());
  const Dims high = per_dim(op, {"high", "edge_padding_high"}, shape.size());
  const Dims interior = per_dim(op, {"interior", "interior_padding"}, shape.size());
  Shape padded;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t gaps = std::max<std::int64_t>(shape[i] - 1, 0);
    if (std::max(std::abs(low[i]), std::abs(high[i])) > most || interior[i] < 0 ||
        interior[i] > most / (gaps + 1)) {
      op.fail(fmt::format("no padding by {}, {} and {} in dimension {}", low[i], high[i],
                          interior[i], i));
    }
    padded.push_back(low[i] + shape[i] + gaps * interior[i] + high[i]);
  }
  check_result(op, padded);
}

void check_transpose(const OpView& op) {
  const Shape& shape = op.operand(0);
  const Dims order = per_dim(op, {"dims", "permutation"}, shape.size());
  check_dims(op, order, shape.size(), "permutation");
  Shape transposed;
  for (const std::int64_t dim : order) transposed.push_back(shape[at(dim)]);
  check_result(op, transposed);
}

void check_reduce(const OpView& op) {
  const Shape& shape = op.operand(0);
  const Dims reduced = op.integers({"dimensions"});
  check_dims(op, reduced, shape.size(), "dimensions");
  Shape rest;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!contains(reduced, static_cast<std::int64_t>(i))) rest.push_back(shape[i]);
  }
  check_result(op, rest);
}

void check_reverse(const OpView& op) {
  check_dims(op, op.integers({"dims", "dimensions"}), op.operand(0).size(), "dimensions");
  check_result(op, op.operand(0));
}

void check_concatenate(const OpView& op) {
  const auto dim = at(checked(op, op.operand(0), op.integer({"dim", "dimension"}, 0)));
  Shape joined = op.operand(0);
  for (std::size_t i = 1; i < op.op().operands.size(); ++i) {
    const Shape& piece = op.operand(i);
    if (piece.size() != joined.size()) op.fail("joins tensors of different ranks");
    joined[dim] += piece[dim];
  }
  check_result(op, joined);
}

void check_sort(const OpView& op) {
  static_cast<void>(op.size(op.operand(0), sorted_dim(op)));
  for (std::size_t i = 0; i < op.op().results.size(); ++i) {
    if (op.operand(i) != op.operand(0) || op.result(i) != op.operand(0)) {
      op.fail("sorts tensors of different shapes");
    }
  }
}

// Whether all of `part` is within `whole`.
bool fits(const Shape& part, const Shape& whole) {
  if (part.size() != whole.size()) return false;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] > whole[i]) return false;
  }
  return true;
}

void check_dynamic_slice(const OpView& op) {
  if (!fits(op.result(0), op.operand(0))) op.fail("its slice is larger than its operand");
}

void check_dynamic_update_slice(const OpView& op) {
  if (!fits(op.operand(1), op.operand(0))) op.fail("its update is larger than what it updates");
  check_result(op, op.operand(0));
}

void check_dot_general(const OpView& op) {
  const DotDimensions numbers = dot_dimensions(op);
  const Shape& lhs = op.operand(0);
  const Shape& rhs = op.operand(1);
  Shape product;
  for (const int dim : numbers.lhs_batching) product.push_back(lhs[at(dim)]);
  for (const int dim : other_dims(lhs, numbers.lhs_batching, numbers.lhs_contracting)) {
    product.push_back(lhs[at(dim)]);
  }
  for (const int dim : other_dims(rhs, numbers.rhs_batching, numbers.rhs_contracting)) {
    product.push_back(rhs[at(dim)]);
  }
  check_result(op, product);
}

// Scalars are the predicate of a select and the bounds of a clamp.
void check_elementwise(const OpView& op) {
  const std::string& name = op.op().name;
  const bool scalars = name == "stablehlo.select" || name == "stablehlo.clamp";
  for (std::size_t i = 0; i < op.op().operands.size(); ++i) {
    if (op.operand(i) == op.result(0) || (scalars && op.operand(i).empty())) continue;
    op.fail(fmt::format("operand {} is [{}], its result [{}]", i, fmt::join(op.operand(i), ", "),
                        fmt::join(op.result(0), ", ")));
  }
}

// What a group of features or of batches has of all `whole`.
std::int64_t part_of(const OpView& op, std::int64_t whole, std::int64_t groups) {
  if (whole % groups != 0) op.fail(fmt::format("{} groups do not divide {}", groups, whole));
  return whole / groups;
}

void check_convolution(const OpView& op) {
  const ConvolutionDimensions numbers = convolution_dimensions(op);
  const Shape& input = op.operand(0);
  const Shape& kernel = op.operand(1);
  if (numbers.feature_groups > 1 && numbers.batch_groups > 1) {
    op.fail("groups of features and of batches");
  }
  if (part_of(op, input[at(numbers.input_feature)], numbers.feature_groups) !=
      kernel[at(numbers.kernel_input)]) {
    op.fail("its kernel takes another number of features than its input has");
  }
  const std::int64_t features = kernel[at(numbers.kernel_output)];
  static_cast<void>(part_of(op, features, numbers.feature_groups));
  static_cast<void>(part_of(op, features, numbers.batch_groups));
  Shape output(input.size());
  output[at(numbers.output_batch)] =
      part_of(op, input[at(numbers.input_batch)], numbers.batch_groups);
  output[at(numbers.output_feature)] = features;
  const Window window = convolution_window(op, numbers);
  for (std::size_t i = 0; i < window.size(); ++i) {
    output[at(numbers.output_spatial[i])] =
        positions(window[i], input[at(numbers.input_spatial[i])]);
  }
  check_result(op, output);
}

Shape positions_in(const OpView& op) {
  const Window window = reduction_window(op);
  Shape result;
  for (std::size_t i = 0; i < window.size(); ++i) {
    if (window[i].size == 0) op.fail("a window without elements");
    result.push_back(positions(window[i], op.operand(0)[i]));
  }
  return result;
}

void check_reduce_window(const OpView& op) { check_result(op, positions_in(op)); }

void check_select_and_scatter(const OpView& op) {
  if (op.operand(1) != positions_in(op)) op.fail("it has not as many sources as windows");
  check_result(op, op.operand(0));
}

void check_collective(const OpView& op) {
  for (const std::string_view name :
       {"all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension"}) {
    if (op.attribute({name}) == nullptr) continue;
    for (std::size_t i = 0; i < op.op().operands.size(); ++i) {
      static_cast<void>(op.size(op.operand(i), op.integer({name}, 0)));
    }
  }
}

const std::map<std::string_view, void (*)(const OpView&)>& checks() {
  static const std::map<std::string_view, void (*)(const OpView&)> table{
      {"stablehlo.all_gather", check_collective},
      {"stablehlo.all_to_all", check_collective},
      {"stablehlo.clamp", check_elementwise},
      {"stablehlo.concatenate", check_concatenate},
      {"stablehlo.convolution", check_convolution},
      {"stablehlo.dot_general", check_dot_general},
      {"stablehlo.dynamic_slice", check_dynamic_slice},
      {"stablehlo.dynamic_update_slice", check_dynamic_update_slice},
      {"stablehlo.pad", check_pad},
      {"stablehlo.reduce", check_reduce},
      {"stablehlo.reduce_scatter", check_collective},
      {"stablehlo.reduce_window", check_reduce_window},
      {"stablehlo.reverse", check_reverse},
      {"stablehlo.select_and_scatter", check_select_and_scatter},
      {"stablehlo.slice", check_slice},
      {"stablehlo.sort", check_sort},
      {"stablehlo.transpose", check_transpose},
  };
  return table;
}

}  // namespace

void verify_dims(const OpView& op) {
  const auto check = checks().find(op.op().name);
  if (check != checks().end()) return check->second(op);
  if (is_elementwise(op.op().name) && op.op().results.size() == 1) check_elementwise(op);
}

void check_dims(const OpView& op, const Dims& dims, std::size_t rank, std::string_view name) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= static_cast<std::int64_t>(rank)) {
      op.fail(fmt::format("{}: no dimension {}", name, dims[i]));
    }
    if (std::count(dims.begin(), dims.end(), dims[i]) > 1) {
      op.fail(fmt::format("{}: dimension {} twice", name, dims[i]));
    }
  }
}

}  // namespace shardsim::stablehlo
