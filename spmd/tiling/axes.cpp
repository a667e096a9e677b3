#include "spmd/tiling/axes.hpp"

#include <algorithm>
#include <numeric>

namespace shardsim::spmd {

bool overlap(const Axis& a, const Axis& b) {
  return a.index == b.index && a.pre_size < b.end() && b.pre_size < a.end();
}

bool contains(const Axis& outer, const Axis& inner) {
  return outer.index == inner.index && outer.pre_size <= inner.pre_size &&
         inner.end() <= outer.end();
}

bool is_prefix(const Axis& prefix, const Axis& axis) {
  return prefix.index == axis.index && prefix.pre_size == axis.pre_size &&
         axis.size % prefix.size == 0;
}

std::optional<Axis> prefix_without(const Axis& axis, const Axis& other) {
  if (!overlap(axis, other)) return axis;
  if (axis.pre_size >= other.pre_size) return std::nullopt;
  // Parts of one axis may begin at sizes that do not divide each other: then none is safe.
  if (other.pre_size % axis.pre_size != 0) return std::nullopt;
  return Axis{axis.index, axis.pre_size, other.pre_size / axis.pre_size};
}

std::optional<Axis> prefix_without(const Axis& axis, const Axes& others) {
  std::optional<Axis> result = axis;
  for (const Axis& other : others) {
    result = prefix_without(*result, other);
    if (!result) return std::nullopt;
  }
  return result;
}

void append(Axes& axes, const Axis& axis) {
  if (!axes.empty() && axes.back().index == axis.index && axes.back().end() == axis.pre_size) {
    axes.back().size *= axis.size;
  } else {
    axes.push_back(axis);
  }
}

std::int64_t total_size(const Axes& axes) {
  return std::accumulate(axes.begin(), axes.end(), std::int64_t{1},
                         [](std::int64_t size, const Axis& axis) { return size * axis.size; });
}

bool is_prefix(const Axes& prefix, const Axes& axes) {
  if (prefix.empty()) return true;
  if (prefix.size() > axes.size()) return false;
  const std::size_t last = prefix.size() - 1;
  return std::equal(prefix.begin(), prefix.end() - 1, axes.begin()) &&
         is_prefix(prefix[last], axes[last]);
}

bool is_strict_prefix(const Axes& prefix, const Axes& axes) {
  return is_prefix(prefix, axes) && prefix != axes;
}

}  // namespace shardsim::spmd
