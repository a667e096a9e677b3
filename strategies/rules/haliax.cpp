#include "strategies/rules/haliax.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/rules/flax_nnx.hpp"

namespace shardsim {
namespace {

// Devices of an entry; nothing when the mesh lacks an axis of it or it names one twice.
std::optional<std::int64_t> devices_of(const SpecEntry& entry, const Mesh& mesh) {
  AxisList axes;
  for (const std::string& axis : entry.axes) {
    const auto part = mesh.parse(axis);
    if (!part || overlaps_any(*part, axes)) return std::nullopt;
    axes.push_back(*part);
  }
  return Mesh::size_of(axes);
}

std::string rounding_advice(const PartitionSpec& spec, const ParameterLeaf& leaf,
                            const Mesh& mesh) {
  for (std::size_t d = 0; d < spec.size(); ++d) {
    const auto devices = devices_of(spec[d], mesh);
    const std::int64_t rounded = round_axis(leaf.shape[d], devices);
    if (rounded == leaf.shape[d]) continue;
    return fmt::format("dimension {} does not divide: {} over {}; rounded it would be {}", d,
                       leaf.shape[d], devices.value_or(1), rounded);
  }
  return "";
}

}  // namespace

LogicalAxisRules read_axis_mapping(const JsonReader& json) {
  LogicalAxisRules mapping;
  for (const auto& [name, axes] : json.members()) {
    mapping.push_back({name, read_spec_entry(axes), axes.place()});
  }
  return mapping;
}

LogicalAssignment apply_axis_mapping(const PartitionSpec& names, const LogicalAxisRules& mapping) {
  LogicalAssignment result = from_sharding_rules(names, mapping);
  for (std::size_t d = 0; d < names.size(); ++d) {
    if (!result.rules[d]) result.spec[d] = SpecEntry{};
  }
  return result;
}

std::int64_t round_axis(std::int64_t size, std::optional<std::int64_t> devices) {
  return devices ? ceil_div(size, *devices) * *devices : size;
}

SpecAssignment assign_haliax(const ParameterTree& tree, const Mesh& mesh,
                             const JsonReader& strategy) {
  const LogicalAxisRules mapping = read_axis_mapping(strategy.at("mapping"));
  SpecAssignment result = assign_by_logical_rules(
      tree, mapping, [&](const PartitionSpec& names, const ParameterLeaf& leaf) {
        LogicalAssignment assignment = apply_axis_mapping(names, mapping);
        assignment.reason = rounding_advice(assignment.spec, leaf, mesh);
        return assignment;
      });
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    if (!tree.leaves[i].logical_axes && !tree.leaves[i].shape.empty()) {
      result.leaves[i].spec = PartitionSpec(1);
    }
  }
  return result;
}

}  // namespace shardsim
