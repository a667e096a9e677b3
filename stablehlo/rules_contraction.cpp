// Rules of ops that sum over dimensions, and of the solver that is written like one.
#include <fmt/format.h>

#include <algorithm>

#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/rules.hpp"

namespace shardsim::stablehlo {
namespace {

// A spatial dimension of the input is windows x window: splitting it splits the output, or the
// kernel. The larger of the two is the major factor, so that a sharding goes there first. Factors
// of size 1 are left out.
void add_spatial(const OpView& op, RuleBuilder& builder, int input_dim, int kernel_dim,
                 int output_dim) {
  const std::int64_t windows = op.size(op.result(0), output_dim);
  const std::int64_t window = op.size(op.operand(1), kernel_dim);
  std::int64_t rest = op.size(op.operand(0), input_dim);
  const auto add = [&](std::int64_t size, bool is_window) {
    const std::int64_t factor = std::min(rest, size);
    if (factor <= 1) return;
    if (is_window) {
      builder.add({input_dim, kernel_dim}, {none}, {factor, FactorKind::reduction});
    } else {
      builder.add({input_dim, none}, {output_dim}, {factor, FactorKind::permutation});
    }
    rest /= factor;
  };
  const bool windows_first = windows >= window;
  add(windows_first ? windows : window, /*is_window=*/!windows_first);
  add(windows_first ? window : windows, /*is_window=*/windows_first);
}

}  // namespace

std::vector<int> other_dims(const Shape& shape, const std::vector<int>& a,
                            const std::vector<int>& b) {
  std::vector<int> result;
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    if (!contains(a, dim) && !contains(b, dim)) result.push_back(dim);
  }
  return result;
}

// Vectors and matrices.
std::optional<FactorRule> dot_rule(const OpView& op) {
  const Shape& lhs = op.operand(0);
  const Shape& rhs = op.operand(1);
  if (lhs.empty() || lhs.size() > 2 || rhs.empty() || rhs.size() > 2) {
    op.fail("operands are neither vectors nor matrices");
  }
  const int contracting = static_cast<int>(lhs.size()) - 1;
  RuleBuilder builder(op.module(), op.function(), op.op());
  int output_dim = 0;
  if (lhs.size() == 2) builder.add({0, none}, {output_dim++}, {lhs[0]});
  if (rhs.size() == 2) builder.add({none, 1}, {output_dim++}, {rhs[1]});
  builder.add({contracting, 0}, {none}, {rhs[0], FactorKind::reduction});
  return builder.build();
}

std::optional<FactorRule> dot_general_rule(const OpView& op) {
  const DotDimensions numbers = dot_dimensions(op);
  const Shape& lhs = op.operand(0);
  const Shape& rhs = op.operand(1);
  RuleBuilder builder(op.module(), op.function(), op.op());
  int output_dim = 0;
  for (std::size_t i = 0; i < numbers.lhs_batching.size(); ++i) {
    const int dim = numbers.lhs_batching[i];
    builder.add({dim, numbers.rhs_batching[i]}, {output_dim++}, {op.size(lhs, dim)});
  }
  for (const int dim : other_dims(lhs, numbers.lhs_batching, numbers.lhs_contracting)) {
    builder.add({dim, none}, {output_dim++}, {op.size(lhs, dim)});
  }
  for (const int dim : other_dims(rhs, numbers.rhs_batching, numbers.rhs_contracting)) {
    builder.add({none, dim}, {output_dim++}, {op.size(rhs, dim)});
  }
  for (std::size_t i = 0; i < numbers.lhs_contracting.size(); ++i) {
    const int dim = numbers.lhs_contracting[i];
    builder.add({dim, numbers.rhs_contracting[i]}, {none},
                {op.size(lhs, dim), FactorKind::reduction});
  }
  return builder.build();
}

std::optional<FactorRule> convolution_rule(const OpView& op) {
  const ConvolutionDimensions numbers = convolution_dimensions(op);
  const Shape& kernel = op.operand(1);
  const Shape& output = op.result(0);
  RuleBuilder builder(op.module(), op.function(), op.op());
  if (numbers.batch_groups > 1) {
    builder.add({numbers.input_batch, numbers.kernel_output}, {numbers.output_feature},
                {numbers.batch_groups});
  }
  builder.add({numbers.input_batch, none}, {numbers.output_batch},
              {op.size(output, numbers.output_batch)});
  for (std::size_t i = 0; i < numbers.input_spatial.size(); ++i) {
    add_spatial(op, builder, numbers.input_spatial[i], numbers.kernel_spatial[i],
                numbers.output_spatial[i]);
  }
  if (numbers.feature_groups > 1) {
    builder.add({numbers.input_feature, numbers.kernel_output}, {numbers.output_feature},
                {numbers.feature_groups});
  }
  builder.add({numbers.input_feature, numbers.kernel_input}, {none},
              {op.size(kernel, numbers.kernel_input), FactorKind::reduction});
  builder.add(
      {none, numbers.kernel_output}, {numbers.output_feature},
      {op.size(output, numbers.output_feature) / (numbers.batch_groups * numbers.feature_groups)});
  return builder.build();
}

// Inputs, then their initial values, which are scalars.
std::optional<FactorRule> reduce_rule(const OpView& op) {
  const std::size_t inputs = op.op().operands.size() / 2;
  if (inputs == 0) op.fail("nothing to reduce");
  const Shape& shape = op.operand(0);
  const std::vector<std::int64_t> reduced = op.integers({"dimensions"});
  RuleBuilder builder(op.module(), op.function(), op.op());
  int output_dim = 0;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<int> operand_dims = dims(2 * inputs, none);
    std::fill_n(operand_dims.begin(), inputs, static_cast<int>(dim));
    if (contains(reduced, static_cast<std::int64_t>(dim))) {
      builder.add(operand_dims, dims(inputs, none), {shape[dim], FactorKind::reduction});
    } else {
      builder.add(operand_dims, dims(inputs, output_dim++), {shape[dim]});
    }
  }
  return builder.build();
}

// a x = b, or x a = b: as the product of a and x is b, one dimension of a is b's and the other x's.
std::optional<FactorRule> triangular_solve_rule(const OpView& op) {
  const Shape& a = op.operand(0);
  const Shape& b = op.operand(1);
  if (a.size() < 2 || b.size() != a.size()) op.fail("operands are no matrices of one rank");
  const Attribute* transpose = op.attribute({"transpose_a"});
  const bool transposed = transpose != nullptr &&
                          transpose->text.find("NO_TRANSPOSE") == std::string::npos &&
                          (transpose->text.find("TRANSPOSE") != std::string::npos ||
                           transpose->text.find("ADJOINT") != std::string::npos);
  const bool left = op.integer({"left_side"}, 1) != 0;
  const int row = static_cast<int>(a.size()) - 2;
  const int column = row + 1;
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (int dim = 0; dim < row; ++dim) builder.add_everywhere(dim, {op.size(a, dim)});
  const auto whole = [](std::int64_t size) { return Factor{size, FactorKind::need_replication}; };
  const int a_of_b = left == transposed ? column : row;  // the dimension that a and b have
  const int a_of_x = left == transposed ? row : column;  // the one that a and x have
  if (left) {
    builder.add({a_of_b, row}, {none}, whole(op.size(a, a_of_b)));
    builder.add({none, column}, {column}, whole(op.size(b, column)));
    builder.add({a_of_x, none}, {row}, whole(op.size(a, a_of_x)));
  } else {
    builder.add({none, row}, {row}, whole(op.size(b, row)));
    builder.add({a_of_b, column}, {none}, whole(op.size(a, a_of_b)));
    builder.add({a_of_x, none}, {column}, whole(op.size(a, a_of_x)));
  }
  return builder.build();
}

}  // namespace shardsim::stablehlo
