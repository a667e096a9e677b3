#include "strategies/rules/submesh_index.hpp"

#include <fmt/format.h>

#include <numeric>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

AxisRef find_axis(const std::string& name, const Mesh& mesh, std::string_view error_type,
                  const Place& place) {
  if (const auto axis = mesh.find(name)) return mesh.whole(*axis);
  AxisNames known;
  for (const MeshAxis& axis : mesh.axes()) known.push_back(axis.name);
  throw RuleError(error_type, place, fmt::format("unknown axis \"{}\"", name),
                  closest(name, known));
}

}  // namespace

AxisNames read_axis_names(const JsonReader& json) {
  if (json.is_string()) return {json.string()};
  if (!json.is_array()) {
    throw RuleError("TypeError", json.place(), "an axis name or a list of axis names is expected");
  }
  AxisNames names;
  for (const JsonReader& name : json.elements()) names.push_back(name.string());
  return names;
}

std::vector<std::int64_t> submesh_device_index(const AxisNames& axes, const Mesh& mesh,
                                               const Place& place) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(mesh.devices()), 0);
  for (const std::string& name : axes) {
    const AxisRef axis = find_axis(name, mesh, "NameError", place);
    std::int64_t stride = 1;  // of the axis in the numbers of the devices
    for (std::size_t i = mesh.axes().size(); i-- > static_cast<std::size_t>(axis.axis) + 1;) {
      stride *= mesh.axes()[i].size;
    }
    for (std::size_t device = 0; device < index.size(); ++device) {
      const std::int64_t coordinate = static_cast<std::int64_t>(device) / stride % axis.size;
      index[device] = index[device] * axis.size + coordinate;
    }
  }
  return index;
}

std::int64_t axes_size(const AxisNames& axes, const Mesh& mesh, const Place& place) {
  return std::accumulate(axes.begin(), axes.end(), std::int64_t{1},
                         [&](std::int64_t size, const std::string& name) {
                           return size * find_axis(name, mesh, "KeyError", place).size;
                         });
}

}  // namespace shardsim
