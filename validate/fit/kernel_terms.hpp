// What kernels of a sweep tell of a device.
//
//   launch + bytes / bandwidth                                  those that move
//   latency + sharers * bytes / bandwidth                       copies (host_copy_cost.hpp)
//   launch + overhead + operations * a
//                     + operations / k * b
//                     + operations * (1 / m + 1 / n) * c        products and attention
//
// each class and type of operands for itself, with the launch that those which move tell, else that
// of the profile. In an EfficiencySurface (machine.hpp) 1 / a is what is reached of the peak, depth
// is b / a and side c / a. Where 1 / a would exceed a published peak, a is the peak's. Terms that
// the records cannot tell from a are left out, depth first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "measurements/device_sweep.hpp"
#include "validate/fit/robust_fit.hpp"

namespace shardsim {

struct MovingFit {
  FittedTerm launch;
  FittedTerm per_byte;
  double most = 0;  // bytes a second, of any record
};

struct RateFit {
  FittedTerm per_flop;
  double most = 0;  // operations a second, of any record
  // Where records have shapes; their intervals are those of b and c beside the fitted a.
  std::optional<FittedTerm> overhead = {};
  std::optional<FittedTerm> depth = {};
  std::optional<FittedTerm> side = {};
};

struct KernelFit {
  std::optional<MovingFit> moving = {};  // none: no records
  std::map<std::pair<KernelClass, DType>, RateFit> rates = {};
};

// Of copies in both directions together, of all devices at once, `sharers` of them over one link:
// the latency as the launch. Nothing where there are none.
[[nodiscard]] std::optional<MovingFit> fit_copies(const std::vector<SweptCopy>& copies,
                                                  std::int64_t sharers);

[[nodiscard]] KernelFit fit_terms(const std::vector<SweptKernel>& kernels,
                                  const DeviceProfile& device);

// A profile holds one efficiency of matmuls for all types: that of bf16, in which most are, or of
// the first type that was swept. Nothing where no matmul was.
[[nodiscard]] std::optional<DType> principal_type(const KernelFit& fit);

// Of a peak or a bandwidth: not an estimate that a measurement replaces.
[[nodiscard]] bool is_published(const Source& source);

}  // namespace shardsim
