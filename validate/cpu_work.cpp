#include "validate/cpu_work.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardsim {
namespace {

// Elements of each of the arrays: 64 MiB, more than the caches of a core.
constexpr std::size_t elements = std::size_t{1} << 24;
constexpr double largest_side = 4096;  // its square is as many

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

}  // namespace

ProductShape product_shape(const Kernel& kernel) {
  const double flops = kernel.flops.count();
  const double side = std::clamp(side_of_product(flops, elements_of(kernel)), 1.0, largest_side);
  ProductShape shape;
  shape.n = std::llround(side);
  const auto n = static_cast<double>(shape.n);
  const double depth = std::max(1.0, flops / (2 * n * n));
  // A matrix of each part finds its place.
  const double parts = std::ceil(n * depth / static_cast<double>(elements));
  shape.times = static_cast<std::int64_t>(parts);
  shape.k = std::llround(depth / parts);
  return shape;
}

CpuWork::CpuWork() : a_(elements, 1.0F), b_(elements, 0.5F), product_(elements) {}

void CpuWork::run(const Kernel& kernel) {
  const bool multiplies = kernel.kernel_class != KernelClass::memory;
  if (!multiplies || kernel.flops.count() < elements_of(kernel)) {
    move(kernel.bytes);
  } else {
    multiply(product_shape(kernel));
  }
}

void CpuWork::multiply(const ProductShape& shape) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;
  const Eigen::Map<const Matrix> left(a_.data(), shape.n, shape.k);
  const Eigen::Map<const Matrix> right(b_.data(), shape.k, shape.n);
  Eigen::Map<Matrix> product(product_.data(), shape.n, shape.n);
  for (std::int64_t i = 0; i < shape.times; ++i) product.noalias() = left * right;
}

// Two reads and a write of four bytes for every element.
void CpuWork::move(Bytes bytes) {
  constexpr std::int64_t bytes_of_element = 3 * sizeof(float);
  auto left = static_cast<std::size_t>(ceil_div(bytes.count(), bytes_of_element));
  while (left > 0) {
    const std::size_t some = std::min(left, elements - next_);
    float* a = a_.data() + next_;
    const float* b = b_.data() + next_;
    for (std::size_t i = 0; i < some; ++i) a[i] = 0.5F * a[i] + b[i];
    next_ = (next_ + some) % elements;
    left -= some;
  }
}

}  // namespace shardsim
