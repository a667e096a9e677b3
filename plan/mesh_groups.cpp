#include "plan/mesh_groups.hpp"

#include <algorithm>

namespace shardsim {
namespace {

struct GroupDigit {
  std::int64_t stride = 1;
  std::int64_t size = 1;
};

// The group as a mixed-radix number, minor digit first; nothing when it is none.
std::optional<std::vector<GroupDigit>> digits_of(const std::vector<std::int64_t>& group) {
  std::vector<GroupDigit> digits;
  std::size_t covered = 1;
  while (covered < group.size()) {
    const std::int64_t stride = group[covered] - group[0];
    if (stride <= 0) return std::nullopt;
    std::size_t size = 1;
    while (size * covered < group.size() &&
           group[size * covered] - group[0] == static_cast<std::int64_t>(size) * stride) {
      ++size;
    }
    // The run may begin a longer one that the whole does not hold: take what divides.
    while (group.size() % (size * covered) != 0) --size;
    if (size == 1) return std::nullopt;
    digits.push_back({stride, static_cast<std::int64_t>(size)});
    covered *= size;
  }
  return digits;
}

// Cuts one digit into parts of axes, minor first.
bool cut_digit(const Mesh& mesh, GroupDigit digit, std::vector<AxisRef>& minor_first) {
  const auto& axes = mesh.axes();
  std::int64_t axis_stride = mesh.devices();
  std::vector<std::int64_t> strides;
  for (const MeshAxis& axis : axes) strides.push_back(axis_stride /= axis.size);
  while (digit.size > 1) {
    std::size_t k = 0;
    while (k < axes.size() && (axes[k].size == 1 || strides[k] > digit.stride ||
                               digit.stride >= strides[k] * axes[k].size)) {
      ++k;
    }
    if (k == axes.size() || digit.stride % strides[k] != 0) return false;
    const std::int64_t minor = digit.stride / strides[k];
    if (axes[k].size % minor != 0) return false;
    const std::int64_t available = axes[k].size / minor;
    const std::int64_t size = std::min(available, digit.size);
    if (available % size != 0 || digit.size % size != 0) return false;
    minor_first.push_back({static_cast<int>(k), available / size, size});
    digit = {digit.stride * size, digit.size / size};
  }
  return true;
}

}  // namespace

bool parts_overlap(std::vector<AxisRef> parts) {
  std::sort(parts.begin(), parts.end());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const AxisRef& major = parts[i - 1];
    if (major.axis == parts[i].axis && (parts[i].pre_size == major.pre_size ||
                                        parts[i].pre_size % (major.pre_size * major.size) != 0)) {
      return true;
    }
  }
  return false;
}

std::optional<std::vector<AxisRef>> axes_of_groups(
    const Mesh& mesh, const std::vector<std::vector<std::int64_t>>& groups) {
  if (groups.empty()) return std::nullopt;
  const auto digits = digits_of(groups.front());
  if (!digits) return std::nullopt;
  std::vector<AxisRef> parts;
  for (const GroupDigit& digit : *digits) {
    if (!cut_digit(mesh, digit, parts)) return std::nullopt;
  }
  std::reverse(parts.begin(), parts.end());
  if (parts_overlap(parts)) return std::nullopt;
  std::vector<std::vector<std::int64_t>> sorted = groups;
  std::vector<std::vector<std::int64_t>> expected = mesh.groups(parts);
  std::sort(sorted.begin(), sorted.end());
  std::sort(expected.begin(), expected.end());
  if (sorted != expected) return std::nullopt;
  return parts;
}

}  // namespace shardsim
