// Products in place of a plan's kernels: as many operations and elements.
#include "validate/backends/work_shape.hpp"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>

namespace shardsim {
namespace {

Kernel matmul(double flops, double elements) {
  return {"einsum", KernelClass::matmul, DType::bf16, Flops(flops),
          Bytes(static_cast<std::int64_t>(2 * elements))};
}

}  // namespace

// The header's example; a cube is where both solutions meet, and what is left where there is none.
TEST_CASE("a cube stays a cube") {
  const double n = 512;
  for (const double elements : {3 * n * n, 2 * n * n}) {
    const WorkShape shape = work_shape(matmul(2 * n * n * n, elements), {});
    CHECK(shape.n == 512);
    CHECK(shape.k == 512);
    CHECK(shape.times == 1);
  }
}

// [64, 4096] x [4096, 64]: 2 * 64^2 * 4096 operations, 2 * 64 * 4096 + 64^2 elements.
TEST_CASE("long sums stay long") {
  const WorkShape shape = work_shape(matmul(2.0 * 64 * 64 * 4096, 2.0 * 64 * 4096 + 64 * 64), {});
  CHECK(shape.n == 64);
  CHECK(shape.k == 4096);
}

TEST_CASE("a product has the kernel's operations, and its elements where it can") {
  const bool holds = rc::check([] {
    const double n = *rc::gen::inRange(1, 4000);
    const double k = *rc::gen::inRange(1, 100'000);
    const double flops = 2 * n * n * k;
    const double elements = 2 * n * k + n * n;
    RC_PRE(flops >= elements);
    const WorkShape shape = work_shape(matmul(flops, elements), {});
    const auto side = static_cast<double>(shape.n);
    const auto depth = static_cast<double>(shape.k);
    const auto times = static_cast<double>(shape.times);
    // Rounded: the depth of each part, to a whole number.
    const double of_shape = 2 * side * side * depth * times;
    RC_ASSERT(std::abs(of_shape / flops - 1) <= 0.5 / (depth - 0.5) + 1e-9);
    RC_ASSERT(side * depth <= 1.01 * (1 << 24));
    // And the side, which E depends on less than in proportion twice over.
    const double moved = times * 2 * side * depth + side * side;
    RC_ASSERT(moved / elements <= 1 + 3 / side + 1 / depth);
  });
  CHECK(holds);
}

// 1000 and 1000 of [1000, 1000] x [1000, 1000]; the depth makes up for the side: 2e9 / (2 * 1024^2)
// = 953.7.
TEST_CASE("sides are multiples of what they are to be, the operations as near as they can be") {
  const WorkLimits limits{4096, 1 << 24, 64};
  const WorkShape shape = work_shape(matmul(2e9, 3e6), limits);
  CHECK(shape.n == 1024);
  CHECK(shape.k == 960);
  CHECK(work_shape(matmul(8, 3), limits).n == 64);
}

TEST_CASE("a product that the plan knows is that one") {
  Kernel kernel = matmul(2.0 * 3 * 100 * 30 * 7, 0);
  kernel.product = {3, 100, 30, 7};
  const WorkShape shape = work_shape(kernel, {});
  CHECK(shape.m == 100);
  CHECK(shape.n == 30);
  CHECK(shape.k == 7);
  CHECK(shape.times == 3);
  // To multiples of 8, the nearest but not 0.
  const WorkShape padded = work_shape(kernel, {4096, 1 << 24, 8});
  CHECK(padded.m == 104);
  CHECK(padded.n == 32);
  CHECK(padded.k == 8);
  // What has fewer operations than elements moves them.
  kernel.bytes = Bytes(1'000'000);
  CHECK_FALSE(is_product(kernel));
}

TEST_CASE("a product of large arrays is done in parts") {
  const bool holds = rc::check([] {
    const Product product{*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 100'000),
                          *rc::gen::inRange(1, 100'000), *rc::gen::inRange(1, 100'000)};
    Kernel kernel = matmul(1e18, 1);
    kernel.product = product;
    const WorkLimits limits;
    const WorkShape shape = work_shape(kernel, limits);
    RC_ASSERT(shape.operand() <= limits.elements);
    RC_ASSERT(shape.result() <= limits.elements);
    const auto points = [](std::int64_t times, std::int64_t m, std::int64_t n, std::int64_t k) {
      return static_cast<double>(times) * static_cast<double>(m) * static_cast<double>(n) *
             static_cast<double>(k);
    };
    const double whole = points(product.batch, product.m, product.n, product.k);
    const double parts = points(shape.times, shape.m, shape.n, shape.k);
    // Halves are rounded up: of what is still over a thousand long.
    RC_ASSERT(parts >= whole);
    RC_ASSERT(parts <= 1.01 * whole);
  });
  CHECK(holds);
}

}  // namespace shardsim
