#include "validate/backends/cpu_work.hpp"

#include <Eigen/Core>
#include <algorithm>

namespace shardsim {
namespace {

// Elements of each of the arrays: 64 MiB, more than the caches of a core.
constexpr std::size_t elements = std::size_t{1} << 24;

}  // namespace

CpuWork::CpuWork() : a_(elements, 1.0F), b_(elements, 0.5F), product_(elements) {}

void CpuWork::run(const Kernel& kernel) {
  if (is_product(kernel)) {
    multiply(work_shape(kernel, {}));
  } else {
    move(kernel.bytes);
  }
}

void CpuWork::multiply(const WorkShape& shape) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;
  const Eigen::Map<const Matrix> left(a_.data(), shape.m, shape.k);
  const Eigen::Map<const Matrix> right(b_.data(), shape.k, shape.n);
  Eigen::Map<Matrix> product(product_.data(), shape.m, shape.n);
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
