#include "sim/collectives/device_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "base/index.hpp"
#include "plan/read_mesh.hpp"

namespace shardsim {
namespace {

struct MegatronName {
  std::string_view name;
  std::array<std::string_view, 3> meaning;  // axes called otherwise
};
constexpr std::array megatron_names = {
    MegatronName{"tp", {"tensor", "model", ""}}, MegatronName{"cp", {"context", "", ""}},
    MegatronName{"ep", {"expert", "", ""}}, MegatronName{"dp", {"data", "fsdp", "replica"}},
    MegatronName{"pp", {"pipe", "pipeline", "stage"}}};

std::vector<std::string> names_of_axes(const Mesh& mesh) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
  return names;
}

// The axes that one name of an order stands for, fastest first.
std::vector<int> axes_called(const std::string& name, const Mesh& mesh, const Place& place) {
  if (const auto axis = mesh.find(name)) return {*axis};
  const auto* known = std::find_if(megatron_names.begin(), megatron_names.end(),
                                   [&](const MegatronName& m) { return m.name == name; });
  const std::vector<std::string> names = names_of_axes(mesh);
  if (known == megatron_names.end()) {
    throw InputError(place,
                     fmt::format("unknown axis \"{}\"; the mesh has {}; other orders are jax, "
                                 "row-major and megatron",
                                 name, fmt::join(names, ", ")),
                     closest(name, names));
  }
  std::vector<int> axes;
  for (std::size_t i = names.size(); i-- > 0;) {
    const auto& meaning = known->meaning;
    const bool means_it = std::find(meaning.begin(), meaning.end(), names[i]) != meaning.end();
    if (means_it) axes.push_back(static_cast<int>(i));
  }
  return axes;
}

// Axes by number, fastest first.
std::vector<int> axes_in_order(const DeviceOrder& order, const Mesh& mesh) {
  std::vector<int> axes;
  for (const std::string& name : order.axes) {
    for (const int axis : axes_called(name, mesh, order.place)) {
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
        throw InputError(order.place, fmt::format("the order names axis \"{}\" twice",
                                                  mesh.axes()[at(axis)].name));
      }
      axes.push_back(axis);
    }
  }
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    const auto axis = static_cast<int>(i);
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    if (mesh.axes()[i].size > 1) {
      throw InputError(order.place, fmt::format("the order {} lacks axis \"{}\", of size {}",
                                                fmt::join(order.axes, "-"), mesh.axes()[i].name,
                                                mesh.axes()[i].size));
    }
    axes.push_back(axis);
  }
  return axes;
}

void check_permutation(const DeviceOrder& order, std::int64_t devices) {
  if (static_cast<std::int64_t>(order.devices.size()) != devices) {
    throw InputError(order.place, fmt::format("lists {} devices, but the mesh has {}",
                                              order.devices.size(), devices));
  }
  std::vector<bool> seen(order.devices.size(), false);
  for (const std::int64_t device : order.devices) {
    if (device < 0 || device >= devices) {
      throw InputError(order.place,
                       fmt::format("device {} is none of 0 to {}", device, devices - 1));
    }
    if (seen[at(device)]) {
      throw InputError(order.place, fmt::format("device {} is listed twice", device));
    }
    seen[at(device)] = true;
  }
}

std::vector<std::int64_t> strides_of(const Mesh& mesh) {
  std::vector<std::int64_t> strides(mesh.axes().size(), 1);
  for (std::size_t i = strides.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * mesh.axes()[i].size;
  }
  return strides;
}

// The axes, slowest first, in whose order the devices are listed, if any.
std::optional<std::vector<int>> axes_of_list(const std::vector<std::int64_t>& devices,
                                             const Mesh& mesh) {
  const std::vector<std::int64_t> position_strides = strides_of(mesh);
  std::vector<std::int64_t> strides(position_strides.size(), 0);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (mesh.axes()[i].size > 1) strides[i] = devices[at(position_strides[i])] - devices[0];
  }
  std::vector<int> axes(strides.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::stable_sort(axes.begin(), axes.end(),
                   [&](int a, int b) { return strides[at(a)] > strides[at(b)]; });
  for (std::size_t position = 0; position < devices.size(); ++position) {
    std::int64_t device = 0;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      const auto along = static_cast<std::int64_t>(position) / position_strides[i];
      device += along % mesh.axes()[i].size * strides[i];
    }
    if (device != devices[position]) return std::nullopt;
  }
  return axes;
}

}  // namespace

std::vector<std::int64_t> slices_along_axes(const DeviceOrder& order, const Mesh& mesh,
                                            std::int64_t slices) {
  std::vector<std::int64_t> along(mesh.axes().size(), 1);
  std::int64_t left = slices;
  for (const MeshAxis& named : order.slices) {
    const auto axis = mesh.find(named.name);
    if (!axis) {
      const std::vector<std::string> names = names_of_axes(mesh);
      throw InputError(
          order.slices_place,
          fmt::format("unknown axis \"{}\"; the mesh has {}", named.name, fmt::join(names, ", ")),
          closest(named.name, names));
    }
    const std::int64_t size = mesh.axes()[at(*axis)].size;
    if (size % named.size != 0) {
      throw InputError(order.slices_place, fmt::format("axis \"{}\" of size {} does not divide "
                                                       "among {} slices",
                                                       named.name, size, named.size));
    }
    along[at(*axis)] = named.size;
    left /= named.size;
  }
  if (!order.slices.empty()) return along;
  for (std::size_t i = 0; i < along.size(); ++i) {
    along[i] = std::gcd(mesh.axes()[i].size, left);
    left /= along[i];
  }
  if (left > 1) {
    throw InputError(order.slices_place, fmt::format("the axes of mesh {} do not divide among {} "
                                                     "slices",
                                                     describe(mesh), slices));
  }
  return along;
}

const std::vector<std::string>& megatron_order() {
  static const std::vector<std::string> order = {"tp", "cp", "ep", "dp", "pp"};
  return order;
}

void check_device_order(const DeviceOrder& order, const Mesh& mesh) {
  if (order.kind == DeviceOrder::Kind::axes) axes_in_order(order, mesh);
  if (order.kind == DeviceOrder::Kind::listed) check_permutation(order, mesh.devices());
}

NumberedMesh::NumberedMesh(const Mesh& given, const DeviceOrder& order) : NumberedMesh(given) {
  check_device_order(order, given);
  if (order.kind == DeviceOrder::Kind::axes) {
    std::vector<int> axes = axes_in_order(order, given);
    std::reverse(axes.begin(), axes.end());
    order_axes(axes);
  }
  if (order.kind != DeviceOrder::Kind::listed) return;
  if (const auto axes = axes_of_list(order.devices, given)) {
    order_axes(*axes);
  } else {
    device_of_ = order.devices;
    mesh_ = Mesh({{"device", given.devices()}});
  }
}

void NumberedMesh::order_axes(const std::vector<int>& slowest_first) {
  if (std::is_sorted(slowest_first.begin(), slowest_first.end())) return;
  axis_of_.assign(slowest_first.size(), 0);
  std::vector<MeshAxis> axes;
  for (const int axis : slowest_first) {
    axis_of_[at(axis)] = static_cast<int>(axes.size());
    axes.push_back(given_.axes()[at(axis)]);
  }
  mesh_ = Mesh(std::move(axes));
}

std::int64_t NumberedMesh::device(std::int64_t position) const {
  if (is_listed()) return device_of_[at(position)];
  if (axis_of_.empty()) return position;
  const std::vector<std::int64_t> strides = strides_of(mesh_);
  std::int64_t number = 0;
  for (std::size_t i = given_.axes().size(); i-- > 0;) {
    const std::int64_t size = given_.axes()[i].size;
    number += position % size * strides[at(axis_of_[i])];
    position /= size;
  }
  return number;
}

Collective NumberedMesh::numbered(const Collective& collective) const {
  Collective result = collective;
  if (is_given()) return result;
  if (is_listed() && !collective.axes.empty()) {
    result.groups = given_.groups(collective.axes);
    result.axes.clear();
  }
  for (AxisRef& part : result.axes) part.axis = axis_of_[at(part.axis)];
  for (auto& group : result.groups) {
    for (std::int64_t& member : group) member = device(member);
  }
  for (auto& [source, target] : result.source_targets) {
    source = device(source);
    target = device(target);
  }
  return result;
}

NumberedMesh NumberedMesh::listed_over(const Mesh& devices) const {
  NumberedMesh result;
  result.mesh_ = devices;
  result.given_ = given_;
  for (std::int64_t i = 0; i < given_.devices(); ++i) result.device_of_.push_back(device(i));
  return result;
}

std::optional<std::vector<std::vector<TorusSpan>>> spans_by_number(const TorusShape& torus,
                                                                   const Mesh& numbered) {
  std::vector<std::vector<TorusSpan>> spans;
  const std::vector<std::int64_t> strides = strides_of(numbered);
  // Of the dimensions as they are numbered, the fastest first.
  std::vector<int> dimensions;
  if (torus.devices_per_chip > 1) dimensions.push_back(static_cast<int>(torus.sizes.size()));
  for (std::size_t i = 0; i < torus.sizes.size(); ++i) dimensions.push_back(static_cast<int>(i));
  const std::vector<std::int64_t> sizes = torus.device_sizes();
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    const std::int64_t begin = strides[axis];
    const std::int64_t end = begin * numbered.axes()[axis].size;
    spans.emplace_back();
    std::int64_t stride = 1;
    for (const int dimension : dimensions) {
      const std::int64_t next = stride * sizes[at(dimension)];
      const std::int64_t low = std::max(begin, stride);
      const std::int64_t high = std::min(end, next);
      if (low < high) {
        if (low % begin != 0 || low % stride != 0 || high % low != 0) return std::nullopt;
        spans.back().insert(spans.back().begin(), {dimension, high / low, low / stride});
      }
      stride = next;
    }
  }
  return spans;
}

Mesh mesh_of_torus(const TorusShape& torus) {
  std::vector<MeshAxis> axes;
  for (std::size_t i = torus.sizes.size(); i-- > 0;) {
    axes.push_back({std::string(1, "xyz"[i]), torus.sizes[i]});
  }
  if (torus.devices_per_chip > 1) axes.push_back({"chip", torus.devices_per_chip});
  return Mesh(std::move(axes));
}

}  // namespace shardsim
