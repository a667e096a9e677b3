#include "validate/fit/fit_device.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "sim/step/host_copy_cost.hpp"
#include "validate/fit/collective_terms.hpp"
#include "validate/fit/kernel_terms.hpp"

namespace shardsim {
namespace {

// A number of a surface; nothing where it is not told, or is 0.
template <class Number>
std::optional<Sourced<Number>> told(const FittedTerm& term, const Number& value,
                                    const Source& source) {
  if (!is_told(term)) return std::nullopt;
  return Sourced<Number>{value, source};
}

EfficiencySurface surface_of(const std::string& quantity, const Sourced<double>& efficiency,
                             const RateFit& rate, FittedNumbers& numbers) {
  const auto size_of = [&](const char* part, const FittedTerm& term) {
    constexpr double tenths = 10;
    return told(term, std::round(term.value * tenths) / tenths,
                numbers.add_size(fmt::format("{}.{}", quantity, part), term));
  };
  EfficiencySurface surface{efficiency};
  surface.depth = size_of("depth", *rate.depth);
  surface.side = size_of("side", *rate.side);
  surface.overhead = told(*rate.overhead, rounded(Seconds(rate.overhead->value)),
                          numbers.add_time(fmt::format("{}.overhead", quantity), *rate.overhead));
  return surface;
}

struct ClassFields {
  const char* name;  // in a profile
  EfficiencySurfaces& surfaces;
};

ClassFields fields_of(DeviceProfile& device, KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::attention:
      return {"attention", device.attention_surfaces};
    case KernelClass::attention_backward:
      return {"attention_backward", device.attention_backward_surfaces};
    default:
      return {"matmul", device.matmul_surfaces};
  }
}

// Published peaks stay, and what is reached of them is fitted. Peaks that are estimates become what
// was reached; of types that were not swept, what was of the others: a backend runs these as those
// (cpu_work.hpp).
void set_peak(DeviceProfile& device, DType dtype, const Sourced<FlopRate>& rate,
              const KernelFit& fit) {
  const auto peak = device.peak.find(dtype);
  if (peak != device.peak.end()) peak->second = rate;
  if (dtype != principal_type(fit)) return;
  for (auto& [other, of_other] : device.peak) {
    const bool was_swept = fit.rates.contains({KernelClass::matmul, other});
    if (!is_published(of_other.source) && !was_swept) of_other = rate;
  }
}

void fit_rates(const KernelFit& fit, DeviceProfile& device, FittedNumbers& numbers) {
  const std::optional<DType> principal = principal_type(fit);
  for (const auto& [which, of_it] : fit.rates) {
    const auto& [kernel_class, dtype] = which;
    const bool is_matmul = kernel_class == KernelClass::matmul;
    if (!is_told(of_it.per_flop)) {
      if (is_matmul && dtype == principal) {
        numbers.say_undetermined("/kernels", "the rate of matmuls");
      }
      continue;
    }
    const ClassFields fields = fields_of(device, kernel_class);
    const auto peak = device.peak.find(dtype);
    Sourced<FlopRate> rate = peak == device.peak.end() ? Sourced<FlopRate>{} : peak->second;
    Sourced<double> efficiency;
    const std::string quantity = fmt::format("device.surfaces.{}.{}", fields.name, name_of(dtype));
    const bool has_surface = of_it.depth && peak != device.peak.end();
    device.kernels.reset();  // of another device, or of another day
    numbers.set_rate(
        rate, efficiency,
        has_surface ? quantity + ".rate" : fmt::format("device.peak.{}", name_of(dtype)),
        of_it.per_flop, of_it.most);
    if (has_surface) {
      fields.surfaces[dtype] = surface_of(quantity, efficiency, of_it, numbers);
    }
    if (!is_matmul) continue;
    if (dtype == principal) device.matmul_efficiency = efficiency;
    set_peak(device, dtype, rate, fit);
  }
  // A backend runs attention as products, which says nothing of one that was measured.
  if (principal && !is_published(device.attention_efficiency.source)) {
    device.attention_efficiency = device.matmul_efficiency;
  }
}

// Of a base profile without the link all of it comes from the records, or nothing.
void fit_host_link(const DeviceSweep& sweep, DeviceProfile& device, FittedNumbers& numbers) {
  const std::optional<HostLinkProfile>& base = device.host_link;
  const std::int64_t sharers = base ? sharers_of(*base, processes_per_host(sweep)) : 1;
  const auto fit = fit_copies(sweep.copies, sharers);
  if (!fit || !is_told(fit->per_byte) || (!base && !fit->launch.determined)) return;
  HostLinkProfile link = base.value_or(HostLinkProfile{});
  numbers.set(link.latency, "device.host_link.latency", fit->launch);
  numbers.set_rate(link.bandwidth, link.efficiency, "device.host_link.bandwidth", fit->per_byte,
                   fit->most);
  device.host_link = link;
}

}  // namespace

void fit_device(const DeviceSweep& sweep, DeviceProfile& device, FittedNumbers& numbers) {
  const KernelFit fit = fit_terms(sweep.kernels, device);
  if (fit.moving) {
    if (!is_told(fit.moving->per_byte)) {
      numbers.say_undetermined("/kernels", "the memory's bandwidth");
    }
    numbers.set(device.kernel_launch, "device.kernel_launch", fit.moving->launch);
    numbers.set_rate(device.memory_bandwidth, device.memory_efficiency, "device.memory_bandwidth",
                     fit.moving->per_byte, fit.moving->most);
  }
  fit_rates(fit, device, numbers);
  fit_host_link(sweep, device, numbers);
}

}  // namespace shardsim
