#include "strategies/rules/auto_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/submesh_index.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t small_elements = 1024;

std::vector<SpecEntry> axes_of(const Mesh& mesh) {
  std::vector<SpecEntry> names;
  for (const MeshAxis& axis : mesh.axes()) names.push_back({axis.name});
  return names;
}

std::vector<std::int64_t> negated(std::vector<std::int64_t> values) {
  for (std::int64_t& value : values) value = -value;
  return values;
}

std::vector<SpecEntry> axes_by_size(const Mesh& mesh, EqualDimensions ties, const Place& place) {
  std::vector<std::int64_t> sizes;
  for (const MeshAxis& axis : mesh.axes()) sizes.push_back(axis.size);
  std::vector<SpecEntry> names;
  for (const std::size_t axis : argsort(negated(std::move(sizes)), ties, place)) {
    names.push_back({mesh.axes()[axis].name});
  }
  return names;
}

struct SizedName {
  SpecEntry name;
  std::int64_t size;
};

std::vector<SizedName> sized_names(const Mesh& mesh, const AutoSpecOptions& options,
                                   const Place& place) {
  const std::vector<SpecEntry>& given = options.names;
  std::vector<SizedName> names;
  for (const SpecEntry& name : given.empty() ? axes_by_size(mesh, options.ties, place) : given) {
    const bool seen = std::any_of(names.begin(), names.end(),
                                  [&](const SizedName& other) { return other.name == name; });
    if (seen && !options.keep_duplicates) continue;
    names.push_back({name, axes_size(name.axes, mesh, place)});
  }
  return names;
}

std::int64_t least_elements(const AutoSpecOptions& options, const Mesh& mesh) {
  return options.min_size == 0 ? mesh.devices() : options.min_size;
}

const std::string& checked_axis(const SpecEntry& entry, const Mesh& mesh, const Place& place) {
  if (entry.axes.size() != 1) {
    throw RuleError("KeyError", place,
                    fmt::format("validate_sharding_config takes one axis per dimension, not {}",
                                to_string(PartitionSpec{entry})));
  }
  static_cast<void>(axes_size(entry.axes, mesh, place));
  return entry.axes[0];
}

}  // namespace

PartitionSpec auto_partition_spec(const ParameterLeaf& leaf, const Mesh& mesh,
                                  const AutoSpecOptions& options, const Place& place) {
  if (!leaf.has_shape) {
    throw RuleError("TypeError", leaf.place, fmt::format("\"{}\" is no array", leaf.name));
  }
  if (element_count(leaf) < least_elements(options, mesh)) return {};

  std::vector<SizedName> left = sized_names(mesh, options, place);
  PartitionSpec spec(leaf.shape.size());
  const std::vector<std::int64_t> keys = options.reverse ? leaf.shape : negated(leaf.shape);
  for (const std::size_t dim : argsort(keys, options.ties, place)) {
    const auto taken = std::find_if(left.begin(), left.end(), [&](const SizedName& name) {
      return leaf.shape[dim] % name.size == 0;
    });
    if (taken == left.end()) continue;
    // auto_partition_spec finds an empty tuple, which divides everything, again and again.
    if (taken->name.axes.empty() && !options.keep_duplicates) continue;
    spec[dim] = taken->name;
    left.erase(taken);
  }
  return spec;
}

PartitionSpec memory_optimized_spec(const ParameterLeaf& leaf, const Mesh& mesh,
                                    std::optional<Bytes> limit,
                                    std::optional<std::vector<SpecEntry>> names, const Place& place,
                                    EqualDimensions ties) {
  if (!limit || byte_count(leaf) < *limit) return {};
  AutoSpecOptions options;
  options.names = names ? std::move(*names) : axes_of(mesh);
  options.ties = ties;
  return auto_partition_spec(leaf, mesh, options, place);
}

std::vector<ShardingIssue> validate_sharding_config(const ParameterTree& tree,
                                                    const std::vector<PartitionSpec>& specs,
                                                    const Mesh& mesh) {
  std::vector<ShardingIssue> issues;
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    const ParameterLeaf& leaf = tree.leaves[i];
    for (std::size_t dim = 0; dim < specs[i].size(); ++dim) {
      if (specs[i][dim].is_whole()) continue;
      if (dim >= leaf.shape.size()) {
        throw RuleError("IndexError", leaf.place,
                        fmt::format("{} of \"{}\" has more entries than the {} dimensions",
                                    to_string(specs[i]), leaf.name, leaf.shape.size()));
      }
      const std::string& axis = checked_axis(specs[i][dim], mesh, leaf.place);
      if (leaf.shape[dim] % mesh.whole(*mesh.find(axis)).size != 0) {
        issues.push_back({ShardingIssue::Kind::indivisible, i, dim});
      }
    }
    if (element_count(leaf) < small_elements && !specs[i].empty()) {
      issues.push_back({ShardingIssue::Kind::small, i});
    }
  }
  return issues;
}

std::vector<SpecEntry> read_auto_names(const JsonReader& json) {
  std::vector<SpecEntry> names;
  for (const JsonReader& name : json.elements()) names.emplace_back(read_axis_names(name));
  return names;
}

SpecAssignment assign_auto_partition_spec(const ParameterTree& tree, const Mesh& mesh,
                                          const JsonReader& strategy) {
  AutoSpecOptions options;
  if (const auto names = strategy.find("names")) options.names = read_auto_names(*names);
  if (const auto min_size = strategy.find("min_size")) {
    options.min_size = min_size->integer(0, std::numeric_limits<std::int64_t>::max());
  }
  if (const auto reverse = strategy.find("reverse")) options.reverse = reverse->boolean();
  if (const auto ties = strategy.find("argsort")) options.ties = read_equal_dimensions(*ties);
  if (const auto keep = strategy.find("keep_duplicates")) options.keep_duplicates = keep->boolean();
  std::optional<Bytes> limit;
  if (const auto given = strategy.find("memory_limit")) {
    limit = parse_bytes(given->string(), given->place());
    for (const char* other : {"min_size", "reverse", "keep_duplicates"}) {
      if (const auto found = strategy.find(other)) {
        found->fail(
            "optimize_sharding_for_memory, which \"memory_limit\" asks for, has no such "
            "option");
      }
    }
  }

  SpecAssignment assignment;
  for (const ParameterLeaf& leaf : tree.leaves) {
    LeafSpec result;
    if (limit) {
      const auto names = options.names.empty()
                             ? std::nullopt
                             : std::optional<std::vector<SpecEntry>>(options.names);
      result.spec = memory_optimized_spec(leaf, mesh, limit, names, strategy.place(), options.ties);
    } else {
      result.spec = auto_partition_spec(leaf, mesh, options, strategy.place());
    }
    result.tactic = limit ? "optimize_sharding_for_memory: by sizes of dimensions and axes"
                          : "auto_partition_spec: by sizes of dimensions and axes";
    if (limit && byte_count(leaf) < *limit) {
      result.reason = fmt::format("{} are less than memory_limit={}",
                                  format_bytes(byte_count(leaf)), format_bytes(*limit));
    } else if (result.spec.empty() && !leaf.shape.empty()) {
      result.reason = fmt::format("{} elements are fewer than min_size={}",
                                  format_count(element_count(leaf)), least_elements(options, mesh));
    } else if (std::all_of(result.spec.begin(), result.spec.end(),
                           [](const SpecEntry& entry) { return entry.is_whole(); }) &&
               !leaf.shape.empty()) {
      result.reason = "no dimension divides by any of the axes";
    }
    assignment.leaves.push_back(std::move(result));
  }
  return assignment;
}

}  // namespace shardsim
