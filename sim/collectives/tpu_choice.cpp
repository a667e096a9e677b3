#include "sim/collectives/tpu_choice.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/collectives/permute_pairs.hpp"
#include "sim/collectives/torus_lanes.hpp"
#include "sim/collectives/torus_routes.hpp"

namespace shardsim {
namespace {

tpu::Coordinates coordinates_of(const TorusRoutes& routes, std::int64_t device) {
  tpu::Coordinates coordinates;
  const std::vector<std::int64_t> at = routes.coordinates(device);
  const auto chip_dimensions = at.begin() + static_cast<std::ptrdiff_t>(routes.chip_dimensions());
  std::copy(at.begin(), chip_dimensions, coordinates.chip.begin());
  if (chip_dimensions != at.end()) coordinates.core = *chip_dimensions;
  return coordinates;
}

// As describe() would find the group that takes these digits, without listing its devices.
tpu::Group group_of(const tpu::Slice& slice, std::size_t chip_dimensions,
                    const std::vector<TorusSpan>& digits) {
  std::array<std::int64_t, tpu::dimensions> extents{1, 1, 1};
  tpu::Group group;
  group.in_order = true;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto dimension = static_cast<std::size_t>(digits[i].dimension);
    (dimension < chip_dimensions ? extents.at(dimension) : group.cores) *= digits[i].size;
    group.members *= digits[i].size;
    if (i == 0) continue;
    const TorusSpan& major = digits[i - 1];
    const bool counts_up =
        major.dimension < digits[i].dimension ||
        (major.dimension == digits[i].dimension && major.stride > digits[i].stride);
    group.in_order = group.in_order && counts_up;
  }
  group.closed = true;
  bool all = true;
  for (std::size_t i = 0; i < tpu::dimensions; ++i) {
    if (extents.at(i) == 1) continue;
    group.dimensions.push_back(i);
    group.closed = group.closed && slice.closed(i);
    all = all && extents.at(i) == slice.sizes.at(i);
  }
  group.whole_dimensions = all && !group.dimensions.empty();
  group.whole = group.whole_dimensions && group.cores == slice.devices_per_chip;
  return group;
}

bool shifts_uniformly(const tpu::Slice& slice, const Placement& placement,
                      const Collective& collective) {
  const TorusRoutes routes(placement);
  std::vector<std::pair<tpu::Coordinates, tpu::Coordinates>> pairs;
  for (const auto& [source, target] : permute_pairs(placement.mesh(), collective)) {
    pairs.emplace_back(coordinates_of(routes, source), coordinates_of(routes, target));
  }
  return is_uniform_shift(slice, pairs);
}

tpu::Group listed_group(const tpu::Slice& slice, const Placement& placement,
                        const std::vector<std::int64_t>& members) {
  const TorusRoutes routes(placement);
  std::vector<tpu::Coordinates> devices;
  for (const std::int64_t member : members) devices.push_back(coordinates_of(routes, member));
  return describe(slice, devices);
}

tpu::Group group_of(const tpu::Slice& slice, const Placement& placement,
                    const Collective& collective) {
  if (!collective.groups.empty()) return listed_group(slice, placement, collective.groups.front());
  if (!collective.axes.empty()) {
    return group_of(slice, placement.machine().torus->sizes.size(),
                    digits_of(placement, collective.axes));
  }
  tpu::Group pairs;  // of a permute that names nothing else
  pairs.members = static_cast<std::int64_t>(collective.source_targets.size()) + 1;
  return pairs;
}

}  // namespace

std::optional<tpu::Choice> tpu_choice(const Placement& placement, const Collective& collective) {
  const std::optional<tpu::Slice> slice = tpu::slice_of(placement.machine());
  if (!slice) return std::nullopt;
  const tpu::Group group = group_of(*slice, placement, collective);
  if (group.members < 2) return std::nullopt;
  tpu::Request request;
  request.kind = collective.kind;
  request.bytes = collective.payload;
  if (collective.kind == CollectiveKind::collective_permute && slice->limited_routing()) {
    request.uniform_shift = shifts_uniformly(*slice, placement, collective);
  }
  return choose(*slice, group, request);
}

}  // namespace shardsim
