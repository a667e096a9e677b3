#include "sim/tpu/span.hpp"

#include <algorithm>
#include <cmath>

namespace shardsim::tpu {
namespace {

constexpr std::int64_t granule = 512;  // bytes, in which the compiler counts
constexpr double vmem = 14.25 * static_cast<double>(MiB);
constexpr double vmem_v6e = 29.25 * static_cast<double>(MiB);
constexpr double buffers = 4;  // of a member's part, beside the span
constexpr double well_filled = 0.75;
constexpr std::int64_t part_multiple = 64;    // granules
constexpr std::int64_t span_multiple = 2048;  // granules, in large groups
constexpr std::int64_t least_multiple = 16;   // granules
// An even part grows by a thirty-second, within bounds in granules.
constexpr std::int64_t growth_divisor = 32;
constexpr std::int64_t least_growth = 8;
constexpr std::int64_t most_growth = 32;

std::int64_t round_up(double value, std::int64_t multiple) {
  const auto multiples =
      static_cast<std::int64_t>(std::ceil(value / static_cast<double>(multiple)));
  return multiples * multiple;
}

}  // namespace

Spans cut_into_spans(Generation generation, Bytes operand, std::int64_t members,
                     std::int64_t ring) {
  const auto group = static_cast<double>(members);
  const double memory = generation == Generation::v6e ? vmem_v6e : vmem;
  const double whole =  // of a member, in granules
      std::ceil(static_cast<double>(operand.count()) / static_cast<double>(granule)) / group;
  const double largest =
      memory / (1 + buffers / static_cast<double>(ring)) / static_cast<double>(granule) / group;
  const double fewest = std::max(1.0, std::ceil(whole / largest));
  const bool one_or_two_well_filled =
      fewest == 1 || (fewest == 2 && whole / fewest >= well_filled * largest);
  if (one_or_two_well_filled) return {true, operand};
  const std::int64_t multiple = std::clamp(span_multiple / members, least_multiple, part_multiple);
  const std::int64_t fits = static_cast<std::int64_t>(largest) / multiple * multiple;
  const double count = fits > 0 ? std::ceil(whole / static_cast<double>(fits)) : fewest;
  std::int64_t part = round_up(whole / count, multiple);
  if (static_cast<double>(part) == whole / count) {
    part += std::clamp(part / growth_divisor, least_growth, most_growth);
  }
  return {false, Bytes(part * static_cast<std::int64_t>(count) * members * granule)};
}

}  // namespace shardsim::tpu
