#include "plan/mesh.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <numeric>

namespace shardsim {
namespace {

// A digit of the device number in the mixed radix of the mesh: the coordinate along one part.
struct Digit {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  bool grouped = false;  // by the collective
};

// The digit that each part is, in the order of `parts`.
std::vector<Digit> digits_of(const std::vector<MeshAxis>& axes, const std::vector<AxisRef>& parts) {
  std::vector<Digit> digits;
  for (const AxisRef& part : parts) {
    const auto axis = static_cast<std::size_t>(part.axis);
    assert(axis < axes.size() && axes[axis].size % (part.pre_size * part.size) == 0);
    std::int64_t stride = axes[axis].size / (part.pre_size * part.size);
    for (std::size_t minor = axis + 1; minor < axes.size(); ++minor) stride *= axes[minor].size;
    digits.push_back({part.size, stride, true});
  }
  return digits;
}

// Positions relative to the first device, the first digit most major.
std::vector<std::int64_t> offsets(const std::vector<Digit>& digits) {
  std::vector<std::int64_t> result{0};
  for (const Digit& digit : digits) {
    std::vector<std::int64_t> next;
    next.reserve(result.size() * static_cast<std::size_t>(digit.size));
    for (std::int64_t offset : result) {
      for (std::int64_t i = 0; i < digit.size; ++i) next.push_back(offset + i * digit.stride);
    }
    result = std::move(next);
  }
  return result;
}

// All digits of the device number, major to minor: the given ones and what lies between them.
std::vector<Digit> all_digits(std::vector<Digit> given, std::int64_t devices) {
  std::sort(given.begin(), given.end(),
            [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  std::vector<Digit> all;
  std::int64_t above = devices;  // stride of the digit before
  const auto fill_down_to = [&](std::int64_t stride) {
    assert(above % stride == 0);
    if (above > stride) all.push_back({above / stride, stride, false});
  };
  for (const Digit& digit : given) {
    if (digit.size == 1) continue;
    fill_down_to(digit.size * digit.stride);
    all.push_back(digit);
    above = digit.stride;
  }
  fill_down_to(1);
  return all;
}

// Digits that stand side by side both in the device number and in the groups are one digit.
std::vector<Digit> merged(const std::vector<Digit>& digits) {
  std::vector<Digit> result;
  for (const Digit& digit : digits) {
    if (digit.size == 1) continue;
    if (!result.empty() && result.back().grouped == digit.grouped &&
        result.back().stride == digit.size * digit.stride) {
      result.back().size *= digit.size;
      result.back().stride = digit.stride;
    } else {
      result.push_back(digit);
    }
  }
  return result;
}

std::optional<std::int64_t> positive(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (status != std::errc{} || end != digits.data() + digits.size() || number < 1) return {};
  return number;
}

}  // namespace

Mesh::Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  for (const MeshAxis& axis : axes_) {
    assert(axis.size >= 1);
    assert(find(axis.name) == &axis - axes_.data());  // no name twice
    devices_ *= axis.size;
  }
}

std::optional<int> Mesh::find(std::string_view name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

AxisRef Mesh::whole(int axis) const {
  return {axis, 1, axes_.at(static_cast<std::size_t>(axis)).size};
}

bool Mesh::is_whole(const AxisRef& part) const { return part == whole(part.axis); }

std::string Mesh::name_of(const AxisRef& part) const {
  const std::string& axis = axes_.at(static_cast<std::size_t>(part.axis)).name;
  return is_whole(part) ? axis : fmt::format("{}:({}){}", axis, part.pre_size, part.size);
}

std::vector<std::string> Mesh::names_of(const std::vector<AxisRef>& parts) const {
  std::vector<std::string> names;
  for (const AxisRef& part : parts) names.push_back(name_of(part));
  return names;
}

std::optional<AxisRef> Mesh::parse(std::string_view name) const {
  if (const auto axis = find(name)) return whole(*axis);
  const std::size_t open = name.rfind(":(");
  const std::size_t close = name.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  const auto axis = find(name.substr(0, open));
  const auto pre_size = positive(name.substr(open + 2, close - open - 2));
  const auto size = positive(name.substr(close + 1));
  if (!axis || !pre_size || !size) return {};
  const std::int64_t axis_size = whole(*axis).size;
  // Divided one by one, so that no product overflows.
  if (axis_size % *pre_size != 0 || (axis_size / *pre_size) % *size != 0) return {};
  return AxisRef{*axis, *pre_size, *size};
}

std::int64_t Mesh::size_of(const std::vector<AxisRef>& parts) {
  std::int64_t size = 1;
  for (const AxisRef& part : parts) size *= part.size;
  return size;
}

std::vector<std::vector<std::int64_t>> Mesh::groups(const std::vector<AxisRef>& parts) const {
  const std::vector<Digit> grouped = digits_of(axes_, parts);
  const std::vector<std::int64_t> members = offsets(grouped);
  std::vector<Digit> between = all_digits(grouped, devices_);
  std::erase_if(between, [](const Digit& digit) { return digit.grouped; });

  std::vector<std::vector<std::int64_t>> result;
  for (std::int64_t first : offsets(between)) {
    std::vector<std::int64_t> group = members;
    for (std::int64_t& device : group) device += first;
    result.push_back(std::move(group));
  }
  return result;
}

std::vector<std::int64_t> Mesh::first_group(const std::vector<AxisRef>& parts) const {
  return offsets(digits_of(axes_, parts));
}

std::string Mesh::iota_groups(const std::vector<AxisRef>& parts) const {
  const std::vector<Digit> grouped = digits_of(axes_, parts);
  std::vector<Digit> order = all_digits(grouped, devices_);  // rows first, then what is in a row
  std::erase_if(order, [](const Digit& digit) { return digit.grouped; });
  order.insert(order.end(), grouped.begin(), grouped.end());
  for (Digit& digit : order) digit.grouped = false;  // rows and columns may merge as well
  order = merged(order);
  std::vector<Digit> reshape = order;
  std::sort(reshape.begin(), reshape.end(),
            [](const Digit& a, const Digit& b) { return a.stride > b.stride; });

  const std::int64_t size = size_of(parts);
  std::vector<std::int64_t> sizes;
  for (const Digit& digit : reshape) sizes.push_back(digit.size);
  if (sizes.empty()) sizes.push_back(1);
  std::string text = fmt::format("[{},{}]<=[{}]", devices_ / size, size, fmt::join(sizes, ","));
  if (reshape.size() < 2) return text;
  std::vector<std::size_t> transpose;
  for (const Digit& digit : order) {
    const auto same = [&](const Digit& other) { return other.stride == digit.stride; };
    const auto found = std::find_if(reshape.begin(), reshape.end(), same);
    transpose.push_back(static_cast<std::size_t>(found - reshape.begin()));
  }
  return text + fmt::format("T({})", fmt::join(transpose, ","));
}

}  // namespace shardsim
