#include "sim/step/sustained_clock.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "machines.hpp"

namespace shardsim {
namespace {

// 1200 TFLOP/s in short runs; 0.8 pJ a product's operation at 1000 W, of which 140 W idle.
DeviceProfile drawing_device() {
  DeviceProfile device = testing::round_device();
  device.peak[DType::bf16].value = FlopRate(1200e12);
  device.memory_bandwidth.value = Bandwidth(1e15);
  device.power.emplace();
  device.power->limit.value = Power(1000);
  device.power->idle.value = Power(140);
  device.power->per_flop[DType::bf16].value = Energy(0.8e-12);
  return device;
}

// Of one second at the peak.
Kernel one_second() {
  return {"matmul", KernelClass::matmul, DType::bf16, Flops(1200e12), Bytes(0)};
}

double clock_of(const DeviceProfile& device, const std::vector<Kernel>& kernels) {
  std::vector<KernelLoad> mix;
  for (const Kernel& kernel : kernels) mix.push_back({kernel, kernel_cost(device, kernel), 1});
  return sustained_clock(device, mix);
}

}  // namespace

// 860 W over 0.8 pJ are 1075 TFLOP/s, 0.896 of those of short runs.
TEST_CASE("products alone sustain what the profile's energies say") {
  CHECK(clock_of(drawing_device(), {one_second()}) == Approx(1075.0 / 1200).epsilon(1e-5));
}

// Of 8 the lowest is at the quantile of 7.625 / 8.25, 1.434 deviations below the others; of
// products alone, whose power goes as the clock's cube.
TEST_CASE("a step has the clock of the slowest of its devices") {
  DeviceProfile device = drawing_device();
  const Kernel kernel = one_second();
  const std::vector<KernelLoad> mix = {{kernel, kernel_cost(device, kernel), 1}};
  CHECK(sustained_clock(device, mix, 8) == sustained_clock(device, mix));
  device.power->spread.emplace();
  device.power->spread->value = 0.02;
  const double alone = sustained_clock(device, mix);
  CHECK(alone == Approx(1075.0 / 1200).epsilon(1e-5));
  CHECK(sustained_clock(device, mix, 8) == Approx(alone * (1 - 0.02 * 1.434)).epsilon(1e-4));
  CHECK(sustained_clock(device, mix, 1024) < sustained_clock(device, mix, 8));
}

// The header's example: with as long a kernel that draws nothing the limit is not reached.
TEST_CASE("the mix decides, not one kernel") {
  DeviceProfile profile = drawing_device();
  Kernel copy{"copy", KernelClass::memory, DType::bf16, Flops(0), Bytes(1'000'000'000'000'000)};
  CHECK(clock_of(profile, {one_second(), copy}) == 1);
  // With half of the power left for it: 0.8e-12 / c0^2 * 1200e12 c^2 / (1 + 1 / c) = 430 - 140 W.
  profile.power_limit.emplace();
  profile.power_limit->value = Power(430);
  const double c = clock_of(profile, {one_second(), copy});
  const double c0 = 1075.0 / 1200;
  CHECK(0.8e-12 / (c0 * c0) * 1200e12 * c * c / (1 + 1 / c) == Approx(290).epsilon(1e-4));
}

// A copy for as long as the products take at full clock draws 400 W above idle: of 760 W for
// 1 + 1/c seconds 400 W are spent for one, the rest is what products may take.
TEST_CASE("what memory bounds draws power for its time") {
  DeviceProfile profile = drawing_device();
  profile.power->moving.value = Power(400);
  profile.power_limit.emplace();
  profile.power_limit->value = Power(900);
  Kernel copy{"copy", KernelClass::memory, DType::bf16, Flops(0), Bytes(1'000'000'000'000'000)};
  const double c = clock_of(profile, {one_second(), copy});
  const double c0 = 1075.0 / 1200;
  CHECK(c < 1);
  CHECK(0.8e-12 / (c0 * c0) * 1200e12 * c * c + 400 == Approx(760 * (1 + 1 / c)).epsilon(1e-4));
  CHECK(clock_of(profile, {copy}) == 1);
}

// Power goes as the cube of the clock: half of the power above idle leaves 2^(-1/3).
TEST_CASE("a lower limit takes less than its share") {
  DeviceProfile profile = drawing_device();
  const double before = clock_of(profile, {one_second()});
  profile.power_limit.emplace();
  profile.power_limit->value = Power(140 + 430);
  CHECK(clock_of(profile, {one_second()}) == Approx(before * std::cbrt(0.5)).epsilon(1e-5));
}

TEST_CASE("memory keeps its time at any clock, and without power nothing changes") {
  DeviceProfile profile = drawing_device();
  const KernelCost cost{Seconds(1), Seconds(2), Seconds(5)};
  CHECK(at_clock(cost, 0.5).total().count() == Approx(6));
  CHECK(at_clock(cost, 0.25).total().count() == Approx(9));
  profile.power.reset();
  CHECK(clock_of(profile, {one_second()}) == 1);
}

}  // namespace shardsim
