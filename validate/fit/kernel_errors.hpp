// How far predicted times of kernels are from measured ones: absolute relative errors, by class,
// type of operands and size: by tens of what they compute, or sixteens of what they move.
#pragma once

#include <vector>

#include "base/text.hpp"
#include "hardware_profiles/machine.hpp"
#include "measurements/device_sweep.hpp"
#include "validate/fit/size_errors.hpp"

namespace shardsim {

struct KernelErrors {
  KernelClass kernel_class = KernelClass::matmul;
  DType dtype = DType::bf16;
  double from = 1;  // operations, to ten times that; of class memory bytes, to sixteen times
  ErrorSummary errors;
};

// In order of class, type and size.
[[nodiscard]] std::vector<KernelErrors> kernel_errors(const DeviceProfile& device,
                                                      const std::vector<SweptKernel>& kernels);

// Of all of them; nothing where there are none.
[[nodiscard]] std::optional<ErrorSummary> all_kernel_errors(
    const DeviceProfile& device, const std::vector<SweptKernel>& kernels);

// Every second one of each class and type, by size, and the others.
struct KernelHalves {
  std::vector<SweptKernel> kept;
  std::vector<SweptKernel> left_out;
};
[[nodiscard]] KernelHalves halves_of(std::vector<SweptKernel> kernels);

// "matmul bf16", "10.0 GFLOP to 100.0 GFLOP", rows, median, 90th percentile.
[[nodiscard]] TextTable kernel_errors_table(const std::vector<KernelErrors>& errors);

}  // namespace shardsim
