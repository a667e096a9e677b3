#include "stablehlo/flops_algorithms.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stablehlo/dimension_numbers.hpp"

namespace shardsim::stablehlo {
namespace {

double fft_flops(const OpView& op) {
  const std::vector<std::int64_t> lengths = op.integers({"length", "fft_length"});
  double points = 1;
  for (const std::int64_t length : lengths) points *= static_cast<double>(length);
  // The real side of a real transform has all points, its complex side about half of them.
  const double real_side = std::max(elements(op.operand(0)), elements(op.result(0)));
  const bool is_real = op.operand(0) != op.result(0);
  if (points <= 1) return 0;
  return (is_real ? 2.5 : 5) * real_side * std::log2(points);
}

double solve_flops(const OpView& op) {
  op.expect_counts(2, 1);
  return elements(op.operand(1)) * static_cast<double>(op.operand(0).back());
}

double cholesky_flops(const OpView& op) {
  op.expect_counts(1, 1);
  const auto n = static_cast<double>(op.operand(0).back());
  return elements(op.operand(0)) * n / 3;
}

double comparisons_along(const OpView& op, std::int64_t dimension) {
  const Shape& shape = op.operand(0);
  const auto row = static_cast<std::uint64_t>(op.size(shape, dimension));
  if (row < 2) return 0;
  return elements(shape) * static_cast<double>(std::bit_width(row - 1));
}

}  // namespace

double comparisons(const OpView& op) {
  if (op.op().name != "stablehlo.sort") return 0;
  return op.operand(0).empty() ? 0 : comparisons_along(op, sorted_dim(op));
}

double algorithm_flops(const OpView& op) {
  const std::string& name = op.op().name;
  if (name == "stablehlo.fft") return fft_flops(op);
  if (name == "stablehlo.cholesky" || name == "stablehlo.triangular_solve") {
    if (op.operand(0).empty()) op.fail("the operand is no matrix");
    return name == "stablehlo.cholesky" ? cholesky_flops(op) : solve_flops(op);
  }
  if (name == "chlo.top_k" || name == "mhlo.topk") {
    const auto last = static_cast<std::int64_t>(op.operand(0).size()) - 1;
    return last < 0 ? 0 : comparisons_along(op, last);
  }
  return 0;
}

}  // namespace shardsim::stablehlo
