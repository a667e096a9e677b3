// Quantities as types: what has a unit cannot be mixed up with what has another.
//
//   Bytes{64 * MiB} / Bandwidth{450e9} == Seconds{1.49e-4}
//
// `count()` gives the plain number in the type's own unit: bytes, bytes per second, operations,
// operations per second, seconds, picoseconds. Sizes and simulated time are integers; rates,
// operations and physical durations are doubles. Rounding happens in one place, `round_up`, where
// a duration becomes simulated time.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace shardsim {

template <class Tag, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(Rep count) : count_(count) {}

  [[nodiscard]] constexpr Rep count() const { return count_; }

  // clang-tidy 14 takes the 0 of the generated comparison for a null pointer.
  friend constexpr auto operator<=>(Quantity, Quantity) = default;  // NOLINT(modernize-use-nullptr)
  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.count_ + b.count_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.count_ - b.count_);
  }
  friend constexpr Quantity operator*(Quantity a, Rep factor) {
    return Quantity(a.count_ * factor);
  }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return a * factor; }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) {
    return Quantity(a.count_ / divisor);
  }

 private:
  Rep count_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;          // floating-point operations
using Bandwidth = Quantity<struct BandwidthTag, double>;  // bytes per second
using FlopRate = Quantity<struct FlopRateTag, double>;    // operations per second
using Seconds = Quantity<struct SecondsTag, double>;
using Power = Quantity<struct PowerTag, double>;            // watts
using Energy = Quantity<struct EnergyTag, double>;          // joules
using SimTime = Quantity<struct SimTimeTag, std::int64_t>;  // picoseconds since the step began

inline constexpr std::int64_t KiB = std::int64_t{1} << 10;
inline constexpr std::int64_t MiB = std::int64_t{1} << 20;
inline constexpr std::int64_t GiB = std::int64_t{1} << 30;
inline constexpr double picoseconds_per_second = 1e12;

[[nodiscard]] constexpr Seconds operator/(Bytes bytes, Bandwidth rate) {
  return Seconds(static_cast<double>(bytes.count()) / rate.count());
}
[[nodiscard]] constexpr Seconds operator/(Flops flops, FlopRate rate) {
  return Seconds(flops.count() / rate.count());
}
[[nodiscard]] constexpr Seconds to_seconds(SimTime time) {
  return Seconds(static_cast<double>(time.count()) / picoseconds_per_second);
}
// The smallest simulated time that is not shorter than `duration`.
[[nodiscard]] inline SimTime round_up(Seconds duration) {
  return SimTime(static_cast<std::int64_t>(std::ceil(duration.count() * picoseconds_per_second)));
}
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace shardsim
