// Products that stand for a plan's kernels.
//
// A matmul whose product the plan knows is that, halved along its longest side as often as its
// arrays are too large. Of other kernels, and of attention, which is one product in memory and
// another on the device, the plan knows what they compute and move: F operations that read and
// write E elements become a product of [n, k] x [k, n] with as many of both:
//
//   2 n n k = F,  2 n k + n n = E   ->   n^3 - E n + F = 0
//
// of whose two solutions the smaller is taken, which has the longer sums; and the cube n = k where
// there is none: nothing with F operations moves so little. What has fewer operations than elements
// reads and writes its bytes, as any other kernel does.
//
// Example: F = 2 * 512^3, E = 3 * 512^2: n = k = 512.
#pragma once

#include <cstdint>

#include "plan/plan.hpp"

namespace shardsim {

// [m, k] x [k, n], `times` of them, one after the other.
struct WorkShape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t times = 1;

  // Of the larger operand and of the result.
  [[nodiscard]] std::int64_t operand() const { return k * (m > n ? m : n); }
  [[nodiscard]] std::int64_t result() const { return m * n; }
};

struct WorkLimits {
  std::int64_t side = 4096;                       // of what is made up
  std::int64_t elements = std::int64_t{1} << 24;  // of an array; side squared at least
  std::int64_t multiple = 1;                      // m, n and k are of it
};

[[nodiscard]] bool is_product(const Kernel& kernel);

// Of a kernel that is one.
[[nodiscard]] WorkShape work_shape(const Kernel& kernel, const WorkLimits& limits);

}  // namespace shardsim
