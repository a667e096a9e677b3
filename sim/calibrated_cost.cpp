#include "sim/calibrated_cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace shardsim {
namespace {

// Below this modelled times hardly change.
constexpr int smallest_power = 8;

class Corrected {
 public:
  Corrected(const CostOfSize& cost, const std::vector<Calibration>& calibrations)
      : cost_(cost), calibrations_(calibrations) {}

  [[nodiscard]] double time(const CostBreakdown& cost, Bytes payload) const {
    const CalibrationCurve* curve = cost.curve ? find_curve(calibrations_, *cost.curve) : nullptr;
    return cost.total().count() * (curve == nullptr ? 1 : curve->factor_at(payload));
  }

  // Of 2^low, at least 2^smallest_power, and of twice that.
  [[nodiscard]] std::pair<double, double> around(int low) const {
    double before = 0;
    for (int power = smallest_power;; ++power) {
      const Bytes payload(std::int64_t{1} << power);
      const double here = std::max(before, time(cost_(payload), payload));
      if (power > low) return {before, here};
      before = here;
    }
  }

 private:
  const CostOfSize& cost_;
  const std::vector<Calibration>& calibrations_;
};

}  // namespace

CostBreakdown calibrated_cost(const CostOfSize& cost, const std::vector<Calibration>& calibrations,
                              Bytes payload) {
  CostBreakdown result = cost(payload);
  if (!result.curve || find_curve(calibrations, *result.curve) == nullptr) return result;
  if (!(result.total() > Seconds(0))) return result;
  const auto bytes = static_cast<double>(payload.count());
  const int low = std::max<int>(smallest_power,
                                std::bit_width(static_cast<std::uint64_t>(payload.count())) - 1);
  const auto [before, after] = Corrected(cost, calibrations).around(low);
  const double share = std::max(0.0, std::log2(bytes) - low);
  const double time = before * std::pow(after / before, share);
  result.factor = time / result.total().count();
  for (Seconds* term : {&result.launch, &result.latency, &result.transfer}) {
    *term = *term * result.factor;
  }
  return result;
}

}  // namespace shardsim
