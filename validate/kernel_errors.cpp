#include "validate/kernel_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/kernel_cost.hpp"

namespace shardsim {
namespace {

// Operations, or bytes.
double size_of(const Kernel& kernel) {
  return kernel.kernel_class == KernelClass::memory ? static_cast<double>(kernel.bytes.count())
                                                    : kernel.flops.count();
}

double error_of(const DeviceProfile& device, const SweptKernel& swept) {
  const Seconds predicted = kernel_cost(device, swept.kernel).total();
  return std::abs(predicted.count() / swept.time.median.count() - 1);
}

std::string text_of(KernelClass kernel_class, double size) {
  constexpr double ten = 10;
  if (kernel_class != KernelClass::memory) {
    return fmt::format("{} to {}", format_flops(Flops(size)), format_flops(Flops(ten * size)));
  }
  const auto bytes = [](double count) { return format_bytes(Bytes(std::llround(count))); };
  return fmt::format("{} to {}", bytes(size), bytes(ten * size));
}

}  // namespace

std::vector<KernelErrors> kernel_errors(const DeviceProfile& device,
                                        const std::vector<SweptKernel>& kernels) {
  std::map<std::tuple<KernelClass, DType, int>, std::vector<double>> by_decade;
  for (const SweptKernel& swept : kernels) {
    const Kernel& kernel = swept.kernel;
    const int decade = static_cast<int>(std::floor(std::log10(std::max(1.0, size_of(kernel)))));
    by_decade[{kernel.kernel_class, kernel.dtype, decade}].push_back(error_of(device, swept));
  }
  std::vector<KernelErrors> all;
  for (const auto& [which, errors] : by_decade) {
    const auto& [kernel_class, dtype, decade] = which;
    all.push_back({kernel_class, dtype, std::pow(10.0, decade), summarize(errors)});
  }
  return all;
}

std::optional<ErrorSummary> all_kernel_errors(const DeviceProfile& device,
                                              const std::vector<SweptKernel>& kernels) {
  if (kernels.empty()) return std::nullopt;
  std::vector<double> errors;
  for (const SweptKernel& swept : kernels) errors.push_back(error_of(device, swept));
  return summarize(errors);
}

KernelHalves halves_of(std::vector<SweptKernel> kernels) {
  const auto key = [](const SweptKernel& swept) {
    const Kernel& kernel = swept.kernel;
    return std::tuple(kernel.kernel_class, kernel.dtype, size_of(kernel), kernel.bytes,
                      swept.time.median);
  };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const SweptKernel& a, const SweptKernel& b) { return key(a) < key(b); });
  KernelHalves halves;
  std::map<std::pair<KernelClass, DType>, int> seen;
  for (SweptKernel& swept : kernels) {
    const int before = seen[{swept.kernel.kernel_class, swept.kernel.dtype}]++;
    (before % 2 == 0 ? halves.kept : halves.left_out).push_back(std::move(swept));
  }
  return halves;
}

TextTable kernel_errors_table(const std::vector<KernelErrors>& errors) {
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"kernels"},
                   {"each"},
                   {"records", right},
                   {"median error", right},
                   {"90th percentile", right}});
  for (const KernelErrors& of : errors) {
    table.add_row({fmt::format("{} {}", name_of(of.kernel_class), name_of(of.dtype)),
                   text_of(of.kernel_class, of.from), std::to_string(of.errors.rows),
                   format_percent(of.errors.median), format_percent(of.errors.percentile_90)});
  }
  return table;
}

}  // namespace shardsim
