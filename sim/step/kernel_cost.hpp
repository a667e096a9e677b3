// What one kernel on one device takes.
//
// Of what the device's profile has a table (hardware_profiles/kernel_data.hpp) the time is looked
// up by shape: products, products of experts, attention by the generation of its kernel, operations
// that memory bounds by function and stack. Else it is a roofline:
//
//   time = launch + max(flops / (peak * efficiency), bytes / (bandwidth * memory efficiency))
//
// The efficiency of the operations is that of the kernel's class (matmul, attention forward,
// attention backward), by the kernel's shape where that is known and the profile has a surface for
// the type (EfficiencySurface in machine.hpp), which may add an overhead to the operations' time. A
// kernel of class memory is bound by its bytes; its operations run at the fp32 peak where the
// profile has one.
//
// Example: 8192 x 8192 x 8192 matmul in bf16, peak 989 TFLOP/s, efficiency 0.8, 384 MiB at
// 3.35 TB/s * 0.9: max(1.10e12 / 791e12, 403e6 / 3.02e12) = max(1390 us, 134 us) = 1390 us.
#pragma once

#include <algorithm>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"

namespace shardsim {

// The peak that operands of a type run at, and the type whose peak it is.
struct OperandPeak {
  DType dtype = DType::bf16;
  FlopRate rate{0};
};

// A type that the profile lacks runs as another:
//   fp16, bf16  as each other: the same units at the same rate on every machine we know
//   fp32        as bf16, on machines without fp32 units for matmuls: jax.lax.Precision.DEFAULT on
//               TPUs multiplies in one bf16 pass and adds in fp32
//   fp8         as bf16, on machines without fp8 units: operands are converted first
//   fp8_e4m3, fp8_e5m2  as fp8
// Any other throws InputError.
[[nodiscard]] OperandPeak operand_peak(const DeviceProfile& device, DType dtype);

struct KernelCost {
  Seconds launch{0};  // until it begins, and what of it no shape changes
  Seconds computing{0};
  Seconds moving{0};
  Seconds adding{0};  // to a result, behind the longer of both
  Evidence evidence = Evidence::efficiency;
  const Source* source = nullptr;  // in the device's tables; none: the profile's efficiencies

  [[nodiscard]] Seconds longest() const { return std::max(computing, moving); }
  [[nodiscard]] Seconds total() const { return launch + longest() + adding; }
};

// At the clock of the tables and efficiencies: sustained_clock.hpp says what power leaves of it.
[[nodiscard]] KernelCost kernel_cost(const DeviceProfile& device, const Kernel& kernel);

}  // namespace shardsim
