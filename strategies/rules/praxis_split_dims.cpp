#include "strategies/rules/praxis_split_dims.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

constexpr std::string_view refused = "AssertionError";

SplitDim at_position(const JsonReader& json, const std::vector<std::string>& mesh_axes) {
  const Json& value = json.json();
  const bool is_negative =
      value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
  if (is_negative) return {};
  const auto position = value.is_boolean() ? static_cast<std::uint64_t>(value.get<bool>())
                                           : value.get<std::uint64_t>();
  if (position >= mesh_axes.size()) {
    throw RuleError(refused, json.place(),
                    fmt::format("the mesh has no axis {}, it has {} ({})", position,
                                mesh_axes.size(), fmt::join(mesh_axes, ", ")));
  }
  return {mesh_axes[position], false, {}};
}

SplitDim read_split_dim(const JsonReader& json, const std::vector<std::string>& mesh_axes) {
  if (json.is_null()) return {};
  if (json.is_bool() || json.json().is_number_integer()) return at_position(json, mesh_axes);
  if (json.is_array()) return {"", true, read_split_dims(json, mesh_axes)};
  if (!json.is_string()) {
    throw RuleError(refused, json.place(),
                    "a dimension is split over an axis, its number, a list of these, or null");
  }
  const std::string axis = json.string();
  if (std::find(mesh_axes.begin(), mesh_axes.end(), axis) == mesh_axes.end()) {
    throw RuleError(
        refused, json.place(),
        fmt::format("axis \"{}\" is not in the mesh ({})", axis, fmt::join(mesh_axes, ", ")),
        closest(axis, mesh_axes));
  }
  return {axis, false, {}};
}

SplitDim canonical_dim(const SplitDim& dim, const Place& place) {
  if (!dim.is_tuple) return dim;
  const bool nested = std::any_of(dim.parts.begin(), dim.parts.end(),
                                  [](const SplitDim& part) { return part.is_tuple; });
  if (nested) throw RuleError("ValueError", place, "an entry of a PartitionSpec cannot be nested");
  if (dim.parts.empty()) return {};
  return dim.parts.size() == 1 ? dim.parts[0] : dim;
}

Json dim_to_json(const SplitDim& dim) {
  if (dim.is_tuple) return to_json(dim.parts);
  return dim.axis.empty() ? Json(nullptr) : Json(dim.axis);
}

// The mapping of `rank` dimensions, whole when it is not given.
SplitDims whole_or(const std::optional<SplitDims>& mapping, std::size_t rank,
                   const std::string& what, const Place& place) {
  if (!mapping) return SplitDims(rank);
  if (mapping->size() != rank) {
    throw RuleError(refused, place,
                    fmt::format("a mapping of {} entries for the {} dimensions {}", mapping->size(),
                                rank, what));
  }
  return *mapping;
}

}  // namespace

std::vector<std::string> axis_names(const Mesh& mesh) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
  return names;
}

SplitDims read_split_dims(const JsonReader& mapping, const std::vector<std::string>& mesh_axes) {
  if (!mapping.is_array()) {
    throw RuleError(refused, mapping.place(),
                    "a split-dims mapping is a list, one entry a dimension");
  }
  SplitDims dims;
  for (const JsonReader& entry : mapping.elements()) {
    dims.push_back(read_split_dim(entry, mesh_axes));
  }
  return dims;
}

SplitDims canonical(const SplitDims& dims, const Place& place) {
  SplitDims result;
  for (const SplitDim& dim : dims) result.push_back(canonical_dim(dim, place));
  return result;
}

PartitionSpec to_partition_spec(const SplitDims& dims, const Place& place) {
  PartitionSpec spec;
  for (const SplitDim& dim : canonical(dims, place)) {
    SpecEntry& entry = spec.emplace_back();
    if (!dim.axis.empty()) entry.axes.push_back(dim.axis);
    for (const SplitDim& part : dim.parts) {
      entry.axes.emplace_back(part.axis.empty() ? null_in_entry : part.axis);
    }
  }
  return spec;
}

Json to_json(const SplitDims& dims) {
  Json json = Json::array();
  for (const SplitDim& dim : dims) json.push_back(dim_to_json(dim));
  return json;
}

std::optional<SplitDims> split_dims_by_rank(const JsonReader& maps, std::size_t rank,
                                            const std::vector<std::string>& mesh_axes) {
  const std::string key = fmt::format("map_{}d", rank);
  for (const auto& [name, mapping] : maps.members()) {
    if (name != key) continue;
    if (mapping.is_null()) return std::nullopt;
    return read_split_dims(mapping, mesh_axes);
  }
  throw RuleError("ValueError", maps.place(),
                  fmt::format("an array of rank {} needs a mapping \"{}\"", rank, key));
}

SplitDims batch_split_dims(std::size_t rank, const std::vector<std::string>& mesh_axes,
                           const Place& place) {
  if (rank == 0) throw RuleError(refused, place, "a scalar has no batch dimension to split");
  SplitDims dims(rank);
  dims[0].is_tuple = true;
  for (const std::string& axis : mesh_axes) dims[0].parts.push_back({axis, false, {}});
  return dims;
}

SplitDims weight_split_dims(const WeightSplit& weight, const Place& place) {
  const SplitDims tensor =
      whole_or(weight.tensor, weight.rank, fmt::format("of \"{}\"", weight.name), place);
  SplitDims dims = whole_or(weight.prefix, weight.prefix_rank,
                            fmt::format("in front of \"{}\"", weight.name), place);
  dims.insert(dims.end(), tensor.begin(), tensor.end());
  return dims;
}

}  // namespace shardsim
