#include "sharding/sharding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "base/units.hpp"

namespace shardsim {

Sharding replicated(std::size_t rank) { return Sharding{std::vector<DimSharding>(rank), {}}; }

bool overlap(const AxisRef& a, const AxisRef& b) {
  if (a.axis != b.axis) return false;
  const auto [major, minor] = std::minmax(a, b);
  return minor.pre_size % (major.pre_size * major.size) != 0;
}

bool overlaps_any(const AxisRef& axis, const AxisList& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const AxisRef& other) { return overlap(axis, other); });
}

bool is_within(const AxisList& axes, const AxisList& all) {
  return std::all_of(axes.begin(), axes.end(),
                     [&](const AxisRef& axis) { return overlaps_any(axis, all); });
}

AxisList splitting_axes(const std::vector<std::string>& names, const Mesh& mesh) {
  AxisList axes;
  for (const std::string& name : names) {
    const AxisRef axis = mesh.whole(*mesh.find(name));
    if (axis.size > 1) axes.push_back(axis);
  }
  return axes;
}

bool contains(const AxisList& list, const AxisRef& axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

bool is_prefix(const AxisList& prefix, const AxisList& list) {
  return prefix.size() <= list.size() && std::equal(prefix.begin(), prefix.end(), list.begin());
}

AxisList merged(const AxisList& list) {
  AxisList result;
  for (const AxisRef& axis : list) {
    if (!result.empty() && result.back().axis == axis.axis &&
        result.back().pre_size * result.back().size == axis.pre_size) {
      result.back().size *= axis.size;
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

AxisList split_axes(const Sharding& sharding) {
  AxisList axes;
  for (const DimSharding& dim : sharding.dims) {
    axes.insert(axes.end(), dim.axes.begin(), dim.axes.end());
  }
  return axes;
}

Sharding without(const Sharding& sharding, const AxisList& axes) {
  Sharding result = sharding;
  for (DimSharding& dim : result.dims) {
    std::erase_if(dim.axes, [&](const AxisRef& axis) { return overlaps_any(axis, axes); });
    if (dim.axes.empty()) dim.blocks = 1;
  }
  return result;
}

Sharding without_unit_axes(const Sharding& sharding) {
  Sharding result = sharding;
  for (DimSharding& dim : result.dims) {
    std::erase_if(dim.axes, [](const AxisRef& axis) { return axis.size == 1; });
    if (dim.axes.empty()) dim.blocks = 1;
  }
  return result;
}

std::int64_t shard_size(std::int64_t size, const DimSharding& dim) {
  assert(size % dim.blocks == 0);
  return dim.blocks * ceil_div(size / dim.blocks, Mesh::size_of(dim.axes));
}

std::int64_t shard_elements(const std::vector<std::int64_t>& shape, const Sharding& sharding) {
  assert(shape.size() == sharding.dims.size());
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    elements *= shard_size(shape[d], sharding.dims[d]);
  }
  return elements;
}

std::string to_string(const Sharding& sharding, const Mesh& mesh) {
  std::vector<std::string> dims;
  for (const DimSharding& dim : sharding.dims) {
    std::string text =
        dim.axes.empty() ? "-" : fmt::format("{}", fmt::join(mesh.names_of(dim.axes), "+"));
    if (dim.blocks > 1) text += fmt::format(" in each of {}", dim.blocks);
    dims.push_back(text);
  }
  std::string text = fmt::format("[{}]", fmt::join(dims, ", "));
  if (!sharding.partial.empty()) {
    text += fmt::format(" partial({})", fmt::join(mesh.names_of(sharding.partial), ", "));
  }
  return text;
}

}  // namespace shardsim
