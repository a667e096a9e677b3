#include "validate/fit/kernel_terms.hpp"

#include <algorithm>

namespace shardsim {
namespace {

using Kernels = std::vector<const SweptKernel*>;

double time_of(const SweptKernel& swept) { return swept.time.median.count(); }
double flops_of(const SweptKernel& swept) { return swept.kernel.flops.count(); }

std::vector<double> times_of(const Kernels& kernels) {
  std::vector<double> times;
  for (const SweptKernel* swept : kernels) times.push_back(time_of(*swept));
  return times;
}

MovingFit fit_moving(const std::vector<double>& bytes, const std::vector<double>& times) {
  MovingFit told;
  std::vector<std::vector<double>> terms;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    told.most = std::max(told.most, bytes[i] / times[i]);
    terms.push_back({1, bytes[i]});
  }
  const RobustFit fit = fit_nonnegative(terms, times);
  told.launch = fit.terms[0];
  told.per_byte = fit.terms[1];
  return told;
}

// Which terms beside a are fitted.
struct Terms {
  bool overhead = false;
  bool depth = false;
  bool side = false;
};

// Columns: those terms in their order, and a where it is not given.
RobustFit fit_columns(const Kernels& kernels, double launch, const Terms& of,
                      std::optional<double> per_flop) {
  std::vector<std::vector<double>> terms;
  std::vector<double> known;
  for (const SweptKernel* swept : kernels) {
    const double flops = flops_of(*swept);
    const Product product = swept->kernel.product.value_or(Product{});
    const auto inverse = [](std::int64_t size) { return 1 / static_cast<double>(size); };
    std::vector<double>& row = terms.emplace_back();
    if (of.overhead) row.push_back(1);
    if (of.depth) row.push_back(flops * inverse(product.k));
    if (of.side) row.push_back(flops * (inverse(product.m) + inverse(product.n)));
    if (!per_flop) row.push_back(flops);
    known.push_back(std::min(launch + flops * per_flop.value_or(0), time_of(*swept)));
  }
  return fit_nonnegative(terms, times_of(kernels), known);
}

FittedTerm over(const FittedTerm& term, double per_flop) {
  return {term.value / per_flop, term.low / per_flop, term.high / per_flop, term.determined};
}

constexpr FittedTerm untold = {0, 0, 0, false};

// What the records do not tell from the rate goes into it: heads of one length do not tell depth.
RateFit fit_rate(const Kernels& kernels, double launch, std::optional<FlopRate> peak) {
  RateFit told;
  for (const SweptKernel* swept : kernels) {
    told.most = std::max(told.most, flops_of(*swept) / time_of(*swept));
  }
  const bool has_shapes = std::all_of(kernels.begin(), kernels.end(), [](const SweptKernel* swept) {
    return swept->kernel.product.has_value();
  });
  Terms terms{has_shapes, has_shapes, has_shapes};
  RobustFit fit = fit_columns(kernels, launch, terms, std::nullopt);
  for (bool* term : {&terms.depth, &terms.side, &terms.overhead}) {
    if (fit.terms.back().determined) break;
    *term = false;
    fit = fit_columns(kernels, launch, terms, std::nullopt);
  }
  told.per_flop = fit.terms.back();
  const bool has_terms = terms.overhead || terms.depth || terms.side;
  if (has_terms && peak && told.per_flop.value * peak->count() < 1) {
    const double at_peak = 1 / peak->count();
    fit = fit_columns(kernels, launch, terms, at_peak);
    told.per_flop = {at_peak, at_peak, at_peak, true};
  }
  if (!has_shapes || told.per_flop.value <= 0) return told;
  auto next = fit.terms.begin();
  told.overhead = terms.overhead ? *next++ : untold;
  told.depth = terms.depth ? over(*next++, told.per_flop.value) : untold;
  told.side = terms.side ? over(*next++, told.per_flop.value) : untold;
  return told;
}

std::optional<FlopRate> published_peak(const DeviceProfile& device, DType dtype) {
  const auto peak = device.peak.find(dtype);
  if (peak == device.peak.end() || !is_published(peak->second.source)) return std::nullopt;
  return peak->second.value;
}

}  // namespace

std::optional<MovingFit> fit_copies(const std::vector<SweptCopy>& copies, std::int64_t sharers) {
  if (copies.empty()) return std::nullopt;
  std::vector<double> bytes;
  std::vector<double> times;
  for (const SweptCopy& copy : copies) {
    bytes.push_back(static_cast<double>(copy.bytes.count()) * static_cast<double>(sharers));
    times.push_back(copy.time.median.count());
  }
  return fit_moving(bytes, times);
}

KernelFit fit_terms(const std::vector<SweptKernel>& kernels, const DeviceProfile& device) {
  Kernels moving;
  std::map<std::pair<KernelClass, DType>, Kernels> computing;
  for (const SweptKernel& swept : kernels) {
    const Kernel& kernel = swept.kernel;
    const bool moves = kernel.kernel_class == KernelClass::memory;
    (moves ? moving : computing[{kernel.kernel_class, kernel.dtype}]).push_back(&swept);
  }
  KernelFit told;
  double launch = device.kernel_launch.value.count();
  if (!moving.empty()) {
    std::vector<double> bytes;
    for (const SweptKernel* swept : moving) {
      bytes.push_back(static_cast<double>(swept->kernel.bytes.count()));
    }
    told.moving = fit_moving(bytes, times_of(moving));
    if (told.moving->launch.determined) launch = told.moving->launch.value;
  }
  for (const auto& [which, of_it] : computing) {
    told.rates[which] = fit_rate(of_it, launch, published_peak(device, which.second));
  }
  return told;
}

std::optional<DType> principal_type(const KernelFit& fit) {
  if (fit.rates.contains({KernelClass::matmul, DType::bf16})) return DType::bf16;
  for (const auto& [which, rate] : fit.rates) {
    if (which.first == KernelClass::matmul) return which.second;
  }
  return std::nullopt;
}

bool is_published(const Source& source) {
  return !source.kind.empty() && source.kind != "estimate";
}

}  // namespace shardsim
