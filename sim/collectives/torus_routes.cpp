#include "sim/collectives/torus_routes.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace shardsim {

TorusRoutes::TorusRoutes(const Placement& placement)
    : mesh_(placement.mesh()),
      spans_(placement.spans()),
      profile_(std::get<TorusProfile>(placement.machine().profile.network)),
      sizes_(placement.machine().torus->device_sizes()),
      wraps_(placement.machine().torus->wraps),
      chip_dimensions_(placement.machine().torus->sizes.size()) {
  wraps_.resize(sizes_.size(), false);
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    twists_.push_back(i < chip_dimensions_ && placement.machine().torus->twists(i));
  }
  std::int64_t devices = 1;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    strides_.push_back(devices);
    devices *= sizes_[i];
    if (i < chip_dimensions_) chips_ = devices;
  }
  messages_.assign(static_cast<std::size_t>(devices) * sizes_.size() * 2, 0);
}

// The mesh position's coordinate on every axis, written in the digits of the axis' spans.
std::vector<std::int64_t> TorusRoutes::coordinates(std::int64_t position) const {
  std::vector<std::int64_t> result(sizes_.size(), 0);
  for (std::size_t axis = mesh_.axes().size(); axis-- > 0;) {
    std::int64_t rest = position % mesh_.axes()[axis].size;
    position /= mesh_.axes()[axis].size;
    for (std::size_t i = spans_[axis].size(); i-- > 0;) {
      const TorusSpan& span = spans_[axis][i];
      result[static_cast<std::size_t>(span.dimension)] += rest % span.size * span.stride;
      rest /= span.size;
    }
  }
  return result;
}

std::int64_t TorusRoutes::device(std::int64_t position) const {
  const std::vector<std::int64_t> at = coordinates(position);
  return std::inner_product(at.begin(), at.end(), strides_.begin(), std::int64_t{0});
}

// Signed hops along a dimension that does not twist: the shorter way; of two alike up from even,
// down from odd coordinates.
std::int64_t TorusRoutes::shorter_way(std::size_t dimension, std::int64_t from,
                                      std::int64_t to) const {
  const std::int64_t size = sizes_[dimension];
  const std::int64_t distance = to - from;
  if (!wraps_[dimension]) return distance;
  if (2 * std::abs(distance) == size) return from % 2 == 0 ? size / 2 : -size / 2;
  if (2 * std::abs(distance) > size) return distance + (distance > 0 ? -size : size);
  return distance;
}

// Signed hops by dimension when those that twist and are in the set are closed, the others not.
std::vector<std::int64_t> TorusRoutes::way(std::vector<std::int64_t> from,
                                           const std::vector<std::int64_t>& to,
                                           unsigned closed) const {
  std::vector<std::int64_t> hops(from.size(), 0);
  std::int64_t shift = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!twists_[i]) continue;
    hops[i] = to[i] - from[i];
    if ((closed >> i & 1U) == 0) continue;
    hops[i] += hops[i] > 0 ? -sizes_[i] : sizes_[i];
    shift += sizes_[i];
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (twists_[i]) continue;
    if (i < chip_dimensions_) from[i] = (from[i] + shift) % sizes_[i];
    hops[i] = shorter_way(i, from[i], to[i]);
  }
  return hops;
}

std::vector<std::int64_t> TorusRoutes::shortest_way(const std::vector<std::int64_t>& from,
                                                    const std::vector<std::int64_t>& to) const {
  unsigned twisting = 0;
  for (std::size_t i = 0; i < twists_.size(); ++i) twisting |= twists_[i] ? 1U << i : 0;
  const auto length = [](const std::vector<std::int64_t>& hops) {
    std::int64_t total = 0;
    for (const std::int64_t along : hops) total += std::abs(along);
    return total;
  };
  std::vector<std::int64_t> best = way(from, to, 0);
  for (unsigned closed = 1; closed <= twisting; ++closed) {
    if ((closed & ~twisting) != 0) continue;
    std::vector<std::int64_t> other = way(from, to, closed);
    if (length(other) < length(best)) best = std::move(other);
  }
  return best;
}

void TorusRoutes::add(std::int64_t source, std::int64_t target, std::int64_t weight) {
  std::vector<std::int64_t> at = coordinates(source);
  const std::vector<std::int64_t> hops = shortest_way(at, coordinates(target));
  std::int64_t total = 0;
  // Where a dimension twists it shifts those that do not: it comes first.
  for (const bool twisting : {true, false}) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (twists_[i] != twisting) continue;
      total += std::abs(hops[i]);
      const std::int64_t step = hops[i] > 0 ? 1 : -1;
      for (std::int64_t hop = 0; hop < std::abs(hops[i]); ++hop) {
        load(at, i, step > 0, weight);
        advance(at, i, step);
      }
    }
  }
  longest_ = std::max(longest_, total);
}

std::int64_t TorusRoutes::chip_hops(std::int64_t source, std::int64_t target) const {
  const std::vector<std::int64_t> hops = shortest_way(coordinates(source), coordinates(target));
  std::int64_t total = 0;
  for (std::size_t i = 0; i < chip_dimensions_; ++i) total += std::abs(hops[i]);
  return total;
}

// Adds to the link that leaves a device along a dimension.
void TorusRoutes::load(const std::vector<std::int64_t>& at, std::size_t dimension, bool up,
                       std::int64_t weight) {
  std::int64_t owner = std::inner_product(at.begin(), at.end(), strides_.begin(), std::int64_t{0});
  if (dimension < chip_dimensions_) owner %= chips_;
  const std::size_t link = (static_cast<std::size_t>(owner) * at.size() + dimension) * 2;
  messages_[link + (up ? 0 : 1)] += weight;
}

void TorusRoutes::advance(std::vector<std::int64_t>& at, std::size_t dimension,
                          std::int64_t step) const {
  const std::int64_t size = sizes_[dimension];
  at[dimension] += step;
  const bool closes = at[dimension] < 0 || at[dimension] == size;
  at[dimension] = (at[dimension] + size) % size;
  if (!closes || !twists_[dimension]) return;
  for (std::size_t i = 0; i < chip_dimensions_; ++i) {
    if (!twists_[i]) at[i] = (at[i] + size) % sizes_[i];
  }
}

std::int64_t TorusRoutes::busiest() const {
  return messages_.empty() ? 0 : *std::max_element(messages_.begin(), messages_.end());
}

double TorusRoutes::time_of(std::size_t link) const {
  const bool inside = link / 2 % sizes_.size() >= chip_dimensions_;
  const LinkProfile& profile = inside ? profile_.chip->link : profile_.link;
  return static_cast<double>(messages_[link]) /
         (profile.bandwidth.value.count() * profile.efficiency.value);
}

Seconds TorusRoutes::transfer_time(double bytes) const {
  double slowest = 0;
  for (std::size_t link = 0; link < messages_.size(); ++link) {
    slowest = std::max(slowest, time_of(link));
  }
  return Seconds(bytes * slowest);
}

double TorusRoutes::busy(int dimension, bool up) const {
  const std::size_t first = 2 * static_cast<std::size_t>(dimension) + (up ? 0 : 1);
  double slowest = 0;
  for (std::size_t link = first; link < messages_.size(); link += 2 * sizes_.size()) {
    slowest = std::max(slowest, time_of(link));
  }
  return slowest / transfer_time(1).count();
}

std::vector<int> TorusRoutes::dimensions() const {
  std::vector<int> used;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    for (std::size_t link = 2 * i; link < messages_.size(); link += 2 * sizes_.size()) {
      if (messages_[link] == 0 && messages_[link + 1] == 0) continue;
      used.push_back(static_cast<int>(i));
      break;
    }
  }
  return used;
}

}  // namespace shardsim
