#include "spmd/tiling/axis_tiling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/index.hpp"
#include "spmd/reshard/reshard_search.hpp"

namespace shardsim::spmd {
namespace {

// Cuts of one axis that all parts used in a sharding share: sizes, major to minor.
struct AxisCuts {
  std::vector<std::int64_t> ends;  // products of the sizes up to each cut, the axis size last
};

void add_cut(AxisCuts& cuts, std::int64_t end) {
  if (end > 1 && std::find(cuts.ends.begin(), cuts.ends.end(), end) == cuts.ends.end()) {
    cuts.ends.push_back(end);
  }
}

}  // namespace

DeviceMesh device_mesh(const stablehlo::ProgramMesh& mesh) {
  DeviceMesh result;
  result.axes = mesh.axes;
  std::int64_t count = 1;
  for (const auto& axis : mesh.axes) count *= axis.size;
  if (mesh.device_ids.empty()) {
    result.devices.resize(at(count));
    std::iota(result.devices.begin(), result.devices.end(), 0);
  } else {
    for (const std::int64_t device : mesh.device_ids) {
      result.devices.push_back(static_cast<int>(device));
    }
  }
  return result;
}

std::vector<AxisDigit> axis_digits(const DeviceMesh& mesh) {
  for (std::size_t i = 0; i < mesh.devices.size(); ++i) {
    if (mesh.devices[i] != static_cast<int>(i)) return {};
  }
  std::vector<AxisDigit> digits;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    std::int64_t before = 1;
    std::int64_t rest = mesh.axes[axis].size;
    for (std::int64_t factor = 2; rest > 1; factor += rest % factor == 0 ? 0 : 1) {
      if (rest % factor != 0) continue;
      digits.push_back({axis, before, factor});
      before *= factor;
      rest /= factor;
    }
  }
  return digits;
}

DeviceMesh without_axes(const DeviceMesh& mesh, const std::vector<std::string>& axes,
                        DeviceGroups& groups) {
  Shape sizes;
  Dims manual;
  Dims free;
  DeviceMesh result;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    sizes.push_back(mesh.axes[i].size);
    const bool is_manual = std::find(axes.begin(), axes.end(), mesh.axes[i].name) != axes.end();
    (is_manual ? manual : free).push_back(static_cast<std::int64_t>(i));
    if (!is_manual) result.axes.push_back(mesh.axes[i]);
  }
  // A tiling of which each manual place is a tile: its groups along the free axes.
  std::int64_t manual_count = 1;
  for (const std::int64_t dim : manual) manual_count *= sizes[at(dim)];
  groups.assign(at(manual_count), {});
  Dims index(sizes.size(), 0);
  for (const int device : mesh.devices) {
    std::int64_t group = 0;
    for (const std::int64_t dim : manual) group = group * sizes[at(dim)] + index[at(dim)];
    groups[at(group)].push_back(device);
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (++index[i] < sizes[i]) break;
      index[i] = 0;
    }
  }
  result.devices.resize(groups.front().size());
  std::iota(result.devices.begin(), result.devices.end(), 0);
  return result;
}

Tiling tiling_of(const DeviceMesh& mesh, const stablehlo::AxisSharding& sharding, std::size_t rank,
                 const Place& place) {
  std::vector<AxisCuts> cuts(mesh.axes.size());
  const auto find_axis = [&](const std::string& name) {
    for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
      if (mesh.axes[i].name == name) return static_cast<std::int64_t>(i);
    }
    return std::int64_t{-1};
  };
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) add_cut(cuts[i], mesh.axes[i].size);
  for (const auto& dimension : sharding.dimensions) {
    for (const stablehlo::AxisPart& part : dimension.axes) {
      const std::int64_t axis = find_axis(part.axis);
      if (axis < 0 || part.size == 0) continue;
      add_cut(cuts[at(axis)], part.pre_size);
      add_cut(cuts[at(axis)], part.pre_size * part.size);
    }
  }
  // The mesh with every axis taken apart at its cuts, and which of these each dimension takes.
  Shape extents;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> pieces(mesh.axes.size());
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    std::sort(cuts[i].ends.begin(), cuts[i].ends.end());
    std::int64_t before = 1;
    for (const std::int64_t end : cuts[i].ends) {
      if (end % before != 0) {
        throw InputError(place, fmt::format("parts of axis \"{}\" overlap", mesh.axes[i].name));
      }
      pieces[i].emplace_back(before, static_cast<std::int64_t>(extents.size()));
      extents.push_back(end / before);
      before = end;
    }
  }
  Dims order;
  Shape tiles(rank, 1);
  for (std::size_t dim = 0; dim < rank && dim < sharding.dimensions.size(); ++dim) {
    for (const stablehlo::AxisPart& part : sharding.dimensions[dim].axes) {
      const std::int64_t axis = find_axis(part.axis);
      if (axis < 0) continue;
      const std::int64_t size = part.size == 0 ? mesh.axes[at(axis)].size : part.size;
      const std::int64_t first = part.size == 0 ? 1 : part.pre_size;
      for (const auto& [before, piece] : pieces[at(axis)]) {
        if (before >= first && before < first * size) order.push_back(piece);
      }
      tiles[dim] *= size;
    }
  }
  if (product(tiles) == 1) return {};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (!holds(order, static_cast<std::int64_t>(i))) order.push_back(static_cast<std::int64_t>(i));
  }
  const Tiling pieces_apart = Tiling::tiled(extents, mesh.devices);
  const Tiling sorted = transpose(pieces_apart, order);
  return Tiling::tiled(std::move(tiles), sorted.devices());
}

}  // namespace shardsim::spmd
