#include "sim/torus_routes.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace shardsim {

TorusRoutes::TorusRoutes(const Placement& placement)
    : mesh_(placement.mesh()),
      spans_(placement.spans()),
      profile_(std::get<TorusProfile>(placement.machine().profile.network)),
      sizes_(placement.machine().torus->device_sizes()),
      wraps_(placement.machine().torus->wraps),
      chip_dimensions_(placement.machine().torus->sizes.size()) {
  wraps_.resize(sizes_.size(), false);
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

void TorusRoutes::add(std::int64_t source, std::int64_t target, std::int64_t weight) {
  const std::vector<std::int64_t> from = coordinates(source);
  const std::vector<std::int64_t> to = coordinates(target);
  std::int64_t here = device(source);
  std::int64_t hops = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t size = sizes_[i];
    std::int64_t distance = to[i] - from[i];
    if (wraps_[i] && 2 * std::abs(distance) > size) distance += distance > 0 ? -size : size;
    if (wraps_[i] && 2 * std::abs(distance) == size) {
      distance = from[i] % 2 == 0 ? size / 2 : -size / 2;
    }
    hops += std::abs(distance);
    const std::int64_t step = distance > 0 ? 1 : -1;
    std::int64_t at = from[i];
    for (std::int64_t hop = 0; hop < std::abs(distance); ++hop) {
      const std::int64_t owner = i < chip_dimensions_ ? here % chips_ : here;
      const std::size_t link = (static_cast<std::size_t>(owner) * from.size() + i) * 2;
      messages_[link + (step > 0 ? 0 : 1)] += weight;
      const std::int64_t next = (at + step + size) % size;
      here += (next - at) * strides_[i];
      at = next;
    }
  }
  longest_ = std::max(longest_, hops);
}

std::int64_t TorusRoutes::busiest() const {
  return messages_.empty() ? 0 : *std::max_element(messages_.begin(), messages_.end());
}

Seconds TorusRoutes::transfer_time(double bytes) const {
  const auto rate = [](const LinkProfile& link) {
    return link.bandwidth.value.count() * link.efficiency.value;
  };
  const double between_chips = rate(profile_.link);
  double slowest = 0;
  for (std::size_t link = 0; link < messages_.size(); ++link) {
    const bool inside = link / 2 % sizes_.size() >= chip_dimensions_;
    const double speed = inside ? rate(profile_.chip->link) : between_chips;
    slowest = std::max(slowest, static_cast<double>(messages_[link]) / speed);
  }
  return Seconds(bytes * slowest);
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
