#include "sim/kernel_cost.hpp"

#include <optional>

#include "base/error.hpp"

namespace shardsim {
namespace {

std::optional<DType> substitute(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return DType::f16;
    case DType::f8_e4m3:
    case DType::f8_e5m2:
      return DType::f8;
    case DType::f16:
    case DType::f32:
    case DType::f8:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

}  // namespace

OperandPeak operand_peak(const DeviceProfile& device, DType dtype) {
  for (std::optional<DType> type : {std::optional(dtype), substitute(dtype)}) {
    if (!type) continue;
    const auto found = device.peak.find(*type);
    if (found != device.peak.end()) return {*type, found->second.value};
  }
  std::string known;
  for (const auto& [type, rate] : device.peak) {
    known += (known.empty() ? "" : ", ") + std::string(name_of(type));
  }
  throw InputError({device.name, "peak"}, "no peak for " + std::string(name_of(dtype)) +
                                              " operands; the profile has " + known);
}

KernelCost kernel_cost(const DeviceProfile& device, const Kernel& kernel) {
  const Bandwidth bandwidth{device.memory_bandwidth.value.count() * device.memory_efficiency.value};
  const Seconds moving = kernel.bytes / bandwidth;
  Seconds computing{0};
  if (kernel.flops.count() > 0 && kernel.kernel_class == KernelClass::memory) {
    const auto peak = device.peak.find(DType::f32);
    if (peak != device.peak.end()) computing = kernel.flops / peak->second.value;
  } else if (kernel.flops.count() > 0) {
    const double efficiency = kernel.kernel_class == KernelClass::matmul
                                  ? device.matmul_efficiency.value
                                  : device.attention_efficiency.value;
    const FlopRate peak = operand_peak(device, kernel.dtype).rate;
    computing = kernel.flops / FlopRate(peak.count() * efficiency);
  }
  return {device.kernel_launch.value, computing, moving};
}

}  // namespace shardsim
