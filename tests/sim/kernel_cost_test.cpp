#include "sim/step/kernel_cost.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "machines.hpp"

namespace shardsim {
namespace {

DeviceProfile device() {
  DeviceProfile profile = testing::round_device();  // 1e12 flop/s, 1e12 B/s
  profile.matmul_efficiency.value = 0.5;
  profile.attention_efficiency.value = 0.25;
  profile.memory_efficiency.value = 0.8;
  profile.kernel_launch.value = Seconds(3e-6);
  return profile;
}

Seconds cost(KernelClass kernel_class, double flops, std::int64_t bytes) {
  const Kernel kernel{"op", kernel_class, DType::bf16, Flops(flops), Bytes(bytes)};
  return kernel_cost(device(), kernel).total();
}

// launch + max(flops / (peak * efficiency), bytes / (bandwidth * efficiency)), by hand.
TEST_CASE("roofline: the larger of operations and bytes, after the launch") {
  CHECK(cost(KernelClass::matmul, 1e9, 1000).count() == Approx(3e-6 + 2e-3));
  CHECK(cost(KernelClass::attention, 1e9, 1000).count() == Approx(3e-6 + 4e-3));
  CHECK(cost(KernelClass::matmul, 1e3, 800'000'000).count() == Approx(3e-6 + 1e-3));
  CHECK(cost(KernelClass::memory, 1e9, 800'000'000).count() == Approx(3e-6 + 1e-3));
  CHECK(cost(KernelClass::matmul, 1e9, 800'000'000).count() == Approx(3e-6 + 2e-3));
  CHECK(cost(KernelClass::memory, 0, 0).count() == Approx(3e-6));
}

// 100 of 128, and 300 of 384, by hand.
TEST_CASE(
    "a product fills of a matrix unit what its depth and width do, attention what a head does") {
  DeviceProfile profile = device();
  profile.matrix_unit = {128, {}};
  Kernel kernel{"op", KernelClass::matmul, DType::bf16, Flops(1e9), Bytes(1000)};
  kernel.product = Product{1, 7, 300, 100};
  CHECK(kernel_cost(profile, kernel).total().count() ==
        Approx(3e-6 + 2e-3 * (384.0 / 300) * (128.0 / 100)));
  kernel.product = Product{1, 7, 256, 128};
  CHECK(kernel_cost(profile, kernel).total().count() == Approx(3e-6 + 2e-3));
  kernel.kernel_class = KernelClass::attention;
  kernel.product = Product{8, 4096, 4100, 64};
  CHECK(kernel_cost(profile, kernel).total().count() == Approx(3e-6 + 2 * 4e-3));
}

TEST_CASE("operations of memory kernels run at the fp32 peak where there is one") {
  DeviceProfile profile = device();
  profile.peak[DType::f32].value = FlopRate(1e11);
  const Kernel kernel{"adamw", KernelClass::memory, DType::f32, Flops(1e9), Bytes(800)};
  CHECK(kernel_cost(profile, kernel).total().count() == Approx(3e-6 + 1e-2));
}

// The example of EfficiencySurface: a million operations take 1 us at the peak.
TEST_CASE("a surface holds for its class and type where the shape is known") {
  DeviceProfile profile = device();
  profile.matmul_surfaces[DType::bf16] = {
      {0.8, {}}, Sourced<double>{100, {}}, Sourced<double>{50, {}}, Sourced<Seconds>{}};
  const auto computing = [&](KernelClass kernel_class, DType dtype,
                             const std::optional<Product>& product) {
    const Kernel kernel{"op", kernel_class, dtype, Flops(1e6), Bytes(0), product};
    return kernel_cost(profile, kernel).computing.count();
  };
  const auto matmul = [&](const Product& product) {
    return computing(KernelClass::matmul, DType::bf16, product);
  };
  CHECK(matmul({1, 4096, 4096, 4096}) == Approx(1e-6 / 0.8 * (1 + 100.0 / 4096 + 2 * 50.0 / 4096)));
  CHECK(matmul({7, 4096, 4096, 100}) == Approx(1e-6 / 0.8 * (2 + 2 * 50.0 / 4096)));
  CHECK(matmul({1, 50, 4096, 4096}) == Approx(1e-6 / 0.8 * (2 + 150.0 / 4096)));
  // fp16 runs as bf16; elsewhere one efficiency stays.
  CHECK(computing(KernelClass::matmul, DType::f16, Product{1, 50, 50, 100}) ==
        Approx(1e-6 / 0.8 * 4));
  CHECK(computing(KernelClass::matmul, DType::bf16, std::nullopt) == Approx(1e-6 / 0.5));
  CHECK(computing(KernelClass::attention, DType::bf16, Product{1, 50, 50, 100}) ==
        Approx(1e-6 / 0.25));
  profile.attention_backward_surfaces[DType::bf16] = {
      {0.4, {}}, {}, {}, Sourced<Seconds>{Seconds(2e-6), {}}};
  CHECK(computing(KernelClass::attention_backward, DType::bf16, Product{1, 50, 50, 100}) ==
        Approx(2e-6 + 1e-6 / 0.4));
}

TEST_CASE("types that the profile lacks run as another, or are an error") {
  DeviceProfile profile = device();
  CHECK(operand_peak(profile, DType::f16).dtype == DType::bf16);
  CHECK(operand_peak(profile, DType::f32).dtype == DType::bf16);
  CHECK(operand_peak(profile, DType::f8).dtype == DType::bf16);
  profile.peak[DType::f32].value = FlopRate(1e11);
  CHECK(operand_peak(profile, DType::f32).rate == FlopRate(1e11));
  CHECK_THROWS_AS(operand_peak(profile, DType::i8), InputError);
}

// i64 and those behind it stand for themselves alone.
TEST_CASE("a type that has no stand-in runs as no other, whatever there is") {
  DeviceProfile all = device();
  const auto every = [](int from, const auto& visit) {
    for (int i = from; i <= static_cast<int>(DType::c128); ++i) {
      const auto dtype = static_cast<DType>(i);
      if (dtype != DType::f8_e4m3 && dtype != DType::f8_e5m2) visit(dtype);
    }
  };
  every(0, [&](DType dtype) { all.peak[dtype].value = FlopRate(1e12); });
  every(static_cast<int>(DType::i64), [&](DType dtype) {
    CAPTURE(name_of(dtype));
    DeviceProfile profile = all;
    profile.peak.erase(dtype);
    CHECK_THROWS_AS(operand_peak(profile, dtype), InputError);
  });
}

}  // namespace
// 1e9 operations at 1e12 a second: 2 ms at half of it, 8 ms at an eighth.
TEST_CASE("rows of no multiple of 8 numbers have a rate of their own where it is known") {
  DeviceProfile profile = device();
  profile.kernel_launch.value = Seconds(0);
  profile.kernels.emplace();
  ProductTable& table = profile.kernels->products[DType::bf16];
  table.flop_efficiency = 0.5;
  Kernel kernel{"einsum", KernelClass::matmul, DType::bf16, Flops(1e9), Bytes(0), Product{}};
  const auto time = [&] { return kernel_cost(profile, kernel).total().count(); };
  CHECK(time() == Approx(2e-3));
  kernel.product->aligned = false;
  CHECK(time() == Approx(2e-3));
  table.unaligned.emplace();
  table.unaligned->value = 0.125;
  CHECK(time() == Approx(8e-3));
  kernel.product->aligned = true;
  CHECK(time() == Approx(2e-3));
}

// 1e9 operations at a tenth of 1e12 a second: 10 ms, more than 1e6 bytes at half of 1e12 take.
TEST_CASE("what is no product by itself may be bound by a share of the peak") {
  DeviceProfile profile = device();
  profile.kernel_launch.value = Seconds(0);
  profile.kernels.emplace();
  OperationTable& table = profile.kernels->operations["chunked_scan"]["eager"];
  table.efficiency = 0.5;
  Kernel kernel{"chunked_scan", KernelClass::matmul, DType::bf16, Flops(1e9), Bytes(1'000'000)};
  kernel.implementation = "eager";
  CHECK(kernel_cost(profile, kernel).total().count() == Approx(2e-6));
  table.flop_efficiency = 0.1;
  CHECK(kernel_cost(profile, kernel).total().count() == Approx(10e-3));
  kernel.implementation = "xla";  // of which nothing is known: as a product
  CHECK(kernel_cost(profile, kernel).total().count() == Approx(2e-3));
}

// 4 products of 100 rows: 1e9 operations take 2 ms at half the peak. In one kernel they are as one
// of 400 rows, three times as slow in this table; launched one by one each begins anew, 10 us.
TEST_CASE("products of experts come one after the other where they are launched so") {
  DeviceProfile profile = device();
  profile.kernel_launch.value = Seconds(0);
  profile.kernels.emplace();
  ProductTable& table = profile.kernels->products[DType::bf16];
  table.flop_efficiency = 0.5;
  table.floor = Seconds(10e-6);
  table.rows = {std::log(100.0), std::log(400.0)};
  table.curves = {{64, 64, std::log(64.0), std::log(64.0), {0.0F, std::log(3.0F)}}};
  Kernel kernel{"grouped_matmul", KernelClass::matmul,    DType::bf16, Flops(1e9),
                Bytes(0),         Product{4, 100, 64, 64}};
  const auto time = [&] { return kernel_cost(profile, kernel).total().count(); };
  CHECK(time() == Approx(3 * (2e-3 + 10e-6)));
  kernel.implementation = "transformer-engine";
  CHECK(time() == Approx(2e-3 + 40e-6));
  kernel.op = "einsum";
  CHECK(time() == Approx(3 * (2e-3 + 10e-6)));
}

}  // namespace shardsim
