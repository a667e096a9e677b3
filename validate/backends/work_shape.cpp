#include "validate/backends/work_shape.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardsim {
namespace {

double elements_of(const Kernel& kernel) {
  constexpr double bits_of_byte = 8;
  return static_cast<double>(kernel.bytes.count()) * bits_of_byte / bits_of(kernel.dtype);
}

// The middle one of the three real solutions of n^3 - E n + F = 0 (the least is negative), in
// Viete's form: 2 sqrt(E / 3) cos((acos(c) - 2 pi) / 3).
double side_of_product(double flops, double whole) {
  const double cube = std::cbrt(flops / 2);
  if (whole <= 3 * cube * cube) return cube;
  const double amplitude = 2 * std::sqrt(whole / 3);
  const double cosine = std::max(-3 * flops / (whole * amplitude), -1.0);
  return amplitude * std::cos((std::acos(cosine) - 2 * std::numbers::pi) / 3);
}

// The nearest multiple, but not 0.
std::int64_t rounded(double value, std::int64_t multiple) {
  return std::max(1LL, std::llround(value / static_cast<double>(multiple))) * multiple;
}

WorkShape shape_of(const Product& product, const WorkLimits& limits) {
  const auto fitting = [&](std::int64_t size) {
    return rounded(static_cast<double>(size), limits.multiple);
  };
  WorkShape shape{product.m, product.n, product.k, product.batch};
  while (std::max(shape.operand(), shape.result()) > limits.elements) {
    std::int64_t& wider = shape.m > shape.n ? shape.m : shape.n;
    std::int64_t& longest = shape.k > wider ? shape.k : wider;
    longest = ceil_div(longest, std::int64_t{2});
    shape.times *= 2;
  }
  return {fitting(shape.m), fitting(shape.n), fitting(shape.k), shape.times};
}

WorkShape made_up_shape(const Kernel& kernel, const WorkLimits& limits) {
  const double flops = kernel.flops.count();
  const double side = std::clamp(side_of_product(flops, elements_of(kernel)), 1.0,
                                 static_cast<double>(limits.side));
  WorkShape shape;
  shape.n = rounded(side, limits.multiple);
  shape.m = shape.n;
  const auto n = static_cast<double>(shape.n);
  const double depth = std::max(1.0, flops / (2 * n * n));
  // A matrix of each part finds its place.
  const double parts = std::ceil(n * depth / static_cast<double>(limits.elements));
  shape.times = static_cast<std::int64_t>(parts);
  shape.k = rounded(depth / parts, limits.multiple);
  return shape;
}

}  // namespace

bool is_product(const Kernel& kernel) {
  return kernel.kernel_class != KernelClass::memory && kernel.flops.count() >= elements_of(kernel);
}

WorkShape work_shape(const Kernel& kernel, const WorkLimits& limits) {
  const bool is_known = kernel.kernel_class == KernelClass::matmul && kernel.product;
  return is_known ? shape_of(*kernel.product, limits) : made_up_shape(kernel, limits);
}

}  // namespace shardsim
