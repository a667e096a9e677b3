#include "sim/step/kernel_cost.hpp"

#include <cassert>
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

const EfficiencySurfaces& surfaces_of(const DeviceProfile& device, KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::matmul:
      return device.matmul_surfaces;
    case KernelClass::attention:
      return device.attention_surfaces;
    case KernelClass::attention_backward:
      return device.attention_backward_surfaces;
    case KernelClass::memory:
      break;
  }
  assert(false);
  return device.matmul_surfaces;
}

Seconds time_on(const EfficiencySurface& surface, const Product& product, Seconds at_peak) {
  const auto over = [](const std::optional<Sourced<double>>& size, std::int64_t of) {
    return size ? size->value / static_cast<double>(of) : 0;
  };
  const double slower = 1 + over(surface.depth, product.k) + over(surface.side, product.m) +
                        over(surface.side, product.n);
  const Seconds overhead = surface.overhead ? surface.overhead->value : Seconds(0);
  return overhead + at_peak * (slower / surface.efficiency.value);
}

// Of operations that are bound by themselves.
Seconds computing_time(const DeviceProfile& device, const Kernel& kernel) {
  const OperandPeak peak = operand_peak(device, kernel.dtype);
  const Seconds at_peak = kernel.flops / peak.rate;
  if (kernel.product) {
    const EfficiencySurfaces& surfaces = surfaces_of(device, kernel.kernel_class);
    const auto surface = surfaces.find(peak.dtype);
    if (surface != surfaces.end()) return time_on(surface->second, *kernel.product, at_peak);
  }
  const bool is_matmul = kernel.kernel_class == KernelClass::matmul;
  return at_peak * (1 / (is_matmul ? device.matmul_efficiency : device.attention_efficiency).value);
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
    computing = computing_time(device, kernel);
  }
  return {device.kernel_launch.value, computing, moving};
}

}  // namespace shardsim
