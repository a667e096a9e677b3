// Work as kernels of a plan describe it, done by one core of a CPU.
//
// A plan knows what a kernel computes and moves, not its shapes. A matmul or attention of F
// operations that reads and writes E elements becomes a product of [n, k] x [k, n] with as many of
// both:
//
//   2 n n k = F,  2 n k + n n = E   ->   n^3 - E n + F = 0
//
// of whose two solutions the smaller is taken, which has the longer sums; and the cube n = k where
// there is none: nothing with F operations moves so little. Elements are fp32, whatever the plan
// has. What has fewer operations than elements, and any other kernel, reads and writes its bytes:
// a = s * a + b over arrays that caches do not hold.
//
// Example: F = 2 * 512^3, E = 3 * 512^2: n = k = 512.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace shardsim {

struct ProductShape {
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t times = 1;  // done so often, one after the other, where matrices would be too large
};

// Of a kernel with at least one operation for every element.
[[nodiscard]] ProductShape product_shape(const Kernel& kernel);

class CpuWork {
 public:
  CpuWork();
  void run(const Kernel& kernel);

 private:
  void multiply(const ProductShape& shape);
  void move(Bytes bytes);

  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> product_;
  std::size_t next_ = 0;  // element from which on the next bytes are moved
};

}  // namespace shardsim
