#include "sim/network/algorithms/torus.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

constexpr std::int64_t directions = 2;

std::vector<Target> both_ways(const Shape& shape, std::size_t axis) {
  return {Shift{axis, 1}, Shift{axis, shape[axis] - 1}};
}

// The axes of more than one rank, from the given one of them on and round.
using Order = std::vector<std::size_t>;

std::vector<Order> orders_of(const Shape& shape) {
  Order axes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] > 1) axes.push_back(axis);
  }
  std::vector<Order> orders;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    orders.push_back(axes);
    std::rotate(axes.begin(), axes.begin() + 1, axes.end());
  }
  return orders;
}

Phases gather_along(const Shape& shape, const Order& order) {
  Phases phases;
  std::int64_t parts = directions * static_cast<std::int64_t>(order.size());
  for (const std::size_t axis : order) parts *= shape[axis];
  std::int64_t gathered = 1;
  for (const std::size_t axis : order) {
    phases.push_back(
        {{.blocks = gathered, .parts = parts, .steps = shape[axis] - 1}, both_ways(shape, axis)});
    gathered *= shape[axis];
  }
  return phases;
}

Phases scatter_along(const Shape& shape, const Order& order) {
  Phases phases = gather_along(shape, order);
  std::reverse(phases.begin(), phases.end());
  return phases;
}

// Halves of parts for the ranks one way that are `step` or further: two for each, but one for the
// rank opposite, which is as far both ways.
std::int64_t halves_sent(std::int64_t size, std::int64_t step) { return size - 2 * step + 1; }

Messages exchange(std::int64_t axes, std::int64_t size, std::int64_t step) {
  return {.blocks = halves_sent(size, step), .parts = directions * axes * size};
}

}  // namespace

Lanes torus_all_gather(const Shape& shape) {
  Lanes lanes;
  for (const Order& order : orders_of(shape)) lanes.push_back(gather_along(shape, order));
  return lanes;
}

Lanes torus_reduce_scatter(const Shape& shape) {
  Lanes lanes;
  for (const Order& order : orders_of(shape)) lanes.push_back(scatter_along(shape, order));
  return lanes;
}

Lanes torus_all_reduce(const Shape& shape) {
  Lanes lanes;
  for (const Order& order : orders_of(shape)) {
    Phases phases = scatter_along(shape, order);
    const Phases gather = gather_along(shape, order);
    phases.insert(phases.end(), gather.begin(), gather.end());
    lanes.push_back(std::move(phases));
  }
  return lanes;
}

Lanes torus_all_to_all(const Shape& shape) {
  Lanes lanes;
  for (const Order& order : orders_of(shape)) {
    Phases& phases = lanes.emplace_back();
    for (const std::size_t axis : order) {
      for (std::int64_t step = 1; step <= shape[axis] / 2; ++step) {
        phases.push_back({exchange(static_cast<std::int64_t>(order.size()), shape[axis], step),
                          both_ways(shape, axis)});
      }
    }
  }
  return lanes;
}

FlowTime torus_all_gather_time(std::int64_t axes, std::int64_t size, Bytes payload,
                               const Way& way) {
  std::int64_t parts = directions * axes;
  for (std::int64_t axis = 0; axis < axes; ++axis) parts *= size;
  FlowTime time{0};
  std::int64_t gathered = 1;
  for (std::int64_t axis = 0; axis < axes; ++axis, gathered *= size) {
    const Messages messages{.blocks = gathered, .parts = parts};
    time += (size - 1) * way.time(messages.bytes(payload));
  }
  return time;
}

FlowTime torus_all_to_all_time(std::int64_t axes, std::int64_t size, Bytes payload,
                               const Way& way) {
  FlowTime time{0};
  for (std::int64_t step = 1; step <= size / 2; ++step) {
    time += axes * way.time(exchange(axes, size, step).bytes(payload));
  }
  return time;
}

}  // namespace shardsim::network
