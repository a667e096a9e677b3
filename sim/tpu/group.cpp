#include "sim/tpu/group.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <optional>
#include <set>

namespace shardsim::tpu {
namespace {

// x, y, z, core.
using Digits = std::array<std::int64_t, dimensions + 1>;

Digits digits_of(const Coordinates& device) {
  return {device.chip[0], device.chip[1], device.chip[2], device.core};
}

std::optional<std::int64_t> distance(const Slice& slice, const Coordinates& from,
                                     const Coordinates& to) {
  std::optional<std::int64_t> found;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::int64_t apart = std::abs(to.chip.at(i) - from.chip.at(i));
    if (apart == 0) continue;
    if (found) return std::nullopt;
    found = slice.wraps.at(i) ? std::min(apart, slice.sizes.at(i) - apart) : apart;
  }
  return found;
}

}  // namespace

bool Group::is_closed_plane() const {
  return dimensions.size() == 2 && whole_dimensions && (cores == 1 || whole) && closed && in_order;
}

Group describe(const Slice& slice, const std::vector<Coordinates>& devices) {
  assert(!devices.empty());
  std::array<std::set<std::int64_t>, dimensions + 1> there;
  bool ascending = true;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const Digits digits = digits_of(devices[rank]);
    for (std::size_t i = 0; i < digits.size(); ++i) there.at(i).insert(digits.at(i));
    ascending = ascending && (rank == 0 || digits_of(devices[rank - 1]) < digits);
  }
  Group group;
  group.members = static_cast<std::int64_t>(devices.size());
  group.cores = static_cast<std::int64_t>(there[dimensions].size());
  std::int64_t volume = group.cores;
  bool all = true;
  group.closed = true;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const auto extent = static_cast<std::int64_t>(there.at(i).size());
    volume *= extent;
    if (extent == 1) continue;
    group.dimensions.push_back(i);
    all = all && extent == slice.sizes.at(i);
    group.closed = group.closed && slice.closed(i);
  }
  group.box = volume == group.members;
  group.in_order = group.box && ascending;
  group.whole_dimensions = group.box && all && !group.dimensions.empty();
  group.whole = group.whole_dimensions && group.cores == slice.devices_per_chip;
  return group;
}

bool is_uniform_shift(const Slice& slice,
                      const std::vector<std::pair<Coordinates, Coordinates>>& pairs) {
  std::optional<std::int64_t> common;
  for (const auto& [from, to] : pairs) {
    const std::optional<std::int64_t> apart = distance(slice, from, to);
    if (!apart || (common && *common != *apart)) return false;
    common = apart;
  }
  return common.has_value();
}

}  // namespace shardsim::tpu
