#include "validate/fit/kernel_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/step/kernel_cost.hpp"

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

// Ranges are by tens of operations, and by sixteens of bytes.
double factor_of(KernelClass kernel_class) {
  constexpr double of_operations = 10;
  constexpr double of_bytes = 16;
  return kernel_class == KernelClass::memory ? of_bytes : of_operations;
}

std::string text_of(KernelClass kernel_class, double from) {
  const double to = from * factor_of(kernel_class);
  if (kernel_class != KernelClass::memory) {
    return fmt::format("{} to {}", format_flops(Flops(from)), format_flops(Flops(to)));
  }
  const auto bytes = [](double count) { return format_bytes(Bytes(std::llround(count))); };
  return fmt::format("{} to {}", bytes(from), bytes(to));
}

}  // namespace

std::vector<KernelErrors> kernel_errors(const DeviceProfile& device,
                                        const std::vector<SweptKernel>& kernels) {
  std::map<std::tuple<KernelClass, DType, double>, std::vector<double>> by_range;
  for (const SweptKernel& swept : kernels) {
    const Kernel& kernel = swept.kernel;
    double from = 1;
    const double factor = factor_of(kernel.kernel_class);
    while (from * factor <= size_of(kernel)) from *= factor;
    by_range[{kernel.kernel_class, kernel.dtype, from}].push_back(error_of(device, swept));
  }
  std::vector<KernelErrors> all;
  for (const auto& [which, errors] : by_range) {
    const auto& [kernel_class, dtype, from] = which;
    all.push_back({kernel_class, dtype, from, summarize(errors)});
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
