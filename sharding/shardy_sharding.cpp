#include "sharding/shardy_sharding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

[[noreturn]] void refuse(const JsonReader& json, const std::string& message,
                         const std::string& suggestion = {}) {
  throw RuleError("ValueError", json.place(), message, suggestion);
}

AxisRef read_axis(const JsonReader& json, const Mesh& mesh) {
  const std::string text = json.string();
  const auto part = mesh.parse(text);
  if (!part) {
    std::vector<std::string> known;
    for (const MeshAxis& axis : mesh.axes()) known.push_back(axis.name);
    refuse(json,
           fmt::format("\"{}\" is no axis of the mesh and no sub-axis that divides one", text),
           closest(text, known));
  }
  if (mesh.name_of(*part) != text) {
    refuse(json, fmt::format("\"{}\" is to be written \"{}\"", text, mesh.name_of(*part)));
  }
  if (!mesh.is_whole(*part) && part->size == 1) {
    refuse(json, fmt::format("sub-axis \"{}\" has one device", text));
  }
  return *part;
}

// Reads a list of axes that stand next to each other, none of which overlaps one of `used`.
AxisList read_axes(const std::vector<JsonReader>& entries, const Mesh& mesh, AxisList& used) {
  AxisList axes;
  for (const JsonReader& entry : entries) {
    const AxisRef axis = read_axis(entry, mesh);
    if (overlaps_any(axis, used)) {
      refuse(entry, fmt::format("\"{}\" overlaps an axis that is in use", mesh.name_of(axis)));
    }
    used.push_back(axis);
    axes.push_back(axis);
    if (merged(axes).size() < axes.size()) {
      refuse(entry, fmt::format("\"{}\" and \"{}\" are to be merged into \"{}\"",
                                mesh.name_of(axes[axes.size() - 2]), mesh.name_of(axis),
                                mesh.name_of(merged(axes).back())));
    }
  }
  return axes;
}

}  // namespace

Sharding read_shardy_sharding(const JsonReader& dims, const Mesh& mesh) {
  Sharding sharding;
  AxisList used;
  for (const JsonReader& dim : dims.elements()) {
    std::vector<JsonReader> entries = dim.elements();
    if (!entries.empty() && entries.back().json() == "?") entries.pop_back();
    sharding.dims.push_back({read_axes(entries, mesh, used)});
  }
  return sharding;
}

void check_replicated_axes(const JsonReader& axes, const Sharding& sharding, const Mesh& mesh) {
  AxisList used = split_axes(sharding);
  const AxisList replicated = read_axes(axes.elements(), mesh, used);
  if (!std::is_sorted(replicated.begin(), replicated.end())) {
    refuse(axes, "replicated axes are listed in the order of the mesh");
  }
}

}  // namespace shardsim
