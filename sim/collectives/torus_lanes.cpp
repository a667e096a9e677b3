#include "sim/collectives/torus_lanes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.hpp"

namespace shardsim {
namespace {

// The digits of the spans (major to minor) that a part of their axis selects.
std::vector<TorusSpan> cut(const Placement& placement, const AxisRef& part) {
  std::int64_t skip = part.pre_size;
  std::int64_t take = part.size;
  std::vector<TorusSpan> digits;
  for (TorusSpan span : placement.spans().at(static_cast<std::size_t>(part.axis))) {
    if (skip % span.size == 0) {
      skip /= span.size;
      continue;
    }
    const bool cuts = span.size % skip == 0;
    if (cuts) span.size /= std::exchange(skip, 1);
    if (!cuts || std::gcd(take, span.size) != std::min(take, span.size)) {
      throw InputError({"", "/mesh"}, placement.mesh().name_of(part) +
                                          " cuts a torus dimension where it cannot be cut");
    }
    const std::int64_t size = std::min(take, span.size);
    if (size > 1) digits.push_back({span.dimension, size, span.stride * (span.size / size)});
    take /= size;
  }
  return digits;
}

// What a dimension that twists needs to close.
bool takes_long_sides(const TorusShape& torus, const std::vector<TorusSpan>& digits) {
  for (std::size_t i = 0; i < torus.sizes.size(); ++i) {
    if (torus.twists(i)) continue;
    std::int64_t members = 1;
    for (const TorusSpan& digit : digits) {
      if (static_cast<std::size_t>(digit.dimension) == i) members *= digit.size;
    }
    if (members != torus.sizes[i]) return false;
  }
  return true;
}

Lane lane_of(const TorusShape& torus, int dimension, const std::vector<TorusSpan>& digits) {
  Lane lane{dimension, 1, 1, false, 0};
  std::int64_t extent = 1;  // with the gaps, up to where the next member would be
  for (const TorusSpan& digit : digits) {
    if (digit.dimension != dimension) continue;
    lane.members *= digit.size;
    lane.hops += (digit.size - 1) * digit.stride;
    extent = std::max(extent, digit.size * digit.stride);
  }
  const auto index = static_cast<std::size_t>(dimension);
  lane.sharing = extent / lane.members;
  const bool in_chip = index >= torus.sizes.size();
  lane.ring = !in_chip && torus.wraps[index] && extent == torus.sizes[index];
  if (lane.ring && torus.twists(index)) lane.ring = takes_long_sides(torus, digits);
  if (lane.ring) lane.hops = extent / 2;
  return lane;
}

}  // namespace

LinkLevel level_of(const Placement& placement, int dimension) {
  const std::size_t chip_dimensions = placement.machine().torus->sizes.size();
  if (static_cast<std::size_t>(dimension) >= chip_dimensions) return LinkLevel::torus_chip;
  return static_cast<LinkLevel>(static_cast<int>(LinkLevel::torus_x) + dimension);
}

std::vector<TorusSpan> digits_of(const Placement& placement, const std::vector<AxisRef>& axes) {
  std::vector<TorusSpan> digits;
  for (const AxisRef& part : axes) {
    const std::vector<TorusSpan> more = cut(placement, part);
    digits.insert(digits.end(), more.begin(), more.end());
  }
  return digits;
}

std::vector<Lane> lanes_of(const Placement& placement, const std::vector<AxisRef>& axes) {
  const std::vector<TorusSpan> digits = digits_of(placement, axes);
  const TorusShape& torus = *placement.machine().torus;
  std::vector<Lane> lanes;
  for (int dimension = 0; dimension < static_cast<int>(torus.device_sizes().size()); ++dimension) {
    const Lane lane = lane_of(torus, dimension, digits);
    if (lane.members > 1) lanes.push_back(lane);
  }
  return lanes;
}

}  // namespace shardsim
