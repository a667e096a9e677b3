// The clock that a device's power limit leaves for a mix of kernels.
//
// A device that would draw more than its limit lowers its clock until it does not. At a fraction c
// of the clock at which kernels are measured in short runs, voltage goes as c too, so that an
// operation takes c^2 of the energy (power as f V^2), and what it is bound by 1 / c of the time:
//
//   idle + (sum flops e_flop + sum (moving - computing) p_moving) / T(c) = limit
//   T(c) = sum launch + max(computing / c, moving),  e_flop at c: c^2 / c0^2 of the profile's
//
// where moving - computing is how long memory alone bounds a kernel, if it does: what operands of
// products cost on their way is in e_flop.
//
// c0 is where products alone are at the profile's own limit, as its energies are given. The mix is
// all kernels of a program: limits act on averages of tens of milliseconds.
//
// Where devices of one model differ (PowerProfile::spread) the mix is that of the slowest of those
// that wait for each other: of n whose clocks at the limit are normal about c with a deviation of
// s c, the expected lowest is c (1 - s z) with z the quantile of (n - 3/8) / (n + 1/4) (Blom,
// "Statistical Estimates and Transformed Beta-Variables", 1958). It is the one whose operations
// take 1 / (1 - s z)^3 of the others' energy, power at the limit going as the clock's cube.
//
// Example: 1200 TFLOP/s in short runs, 0.8 pJ a product's operation at 1000 W of which 140 W idle:
// alone they sustain 860 / 0.8e-12 = 1075 TFLOP/s, c0 = 0.896; in a step that computes half of the
// time they draw 140 + 1200e12 / 2 * 0.8e-12 / 0.896^2 = 738 W, and c is 1.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "sim/step/kernel_cost.hpp"

namespace shardsim {

// Kernels of one kind, so many times in the mix.
struct KernelLoad {
  Kernel kernel;
  KernelCost cost;
  double count = 1;
};

// 1 where the device's power is not known, or its limit is not reached. Of the slowest of so many
// `devices`.
[[nodiscard]] double sustained_clock(const DeviceProfile& device,
                                     const std::vector<KernelLoad>& mix, std::int64_t devices = 1);
// Of a program of the plan.
[[nodiscard]] double sustained_clock(const DeviceProfile& device, const Plan& plan,
                                     const Program& program);
// Of a kernel at this clock.
[[nodiscard]] KernelCost at_clock(KernelCost cost, double clock);

}  // namespace shardsim
