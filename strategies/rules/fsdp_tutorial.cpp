#include "strategies/rules/fsdp_tutorial.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <numeric>

#include "strategies/rules/rule_error.hpp"

namespace shardsim {
namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool holds(const std::optional<BoxName>& name, const std::string& axis) {
  return name && std::find(name->axes.begin(), name->axes.end(), axis) != name->axes.end();
}

// Why a parameter is whole although the strategy shards.
std::string reason_of(const ShardedParameter& result, const FsdpTutorial& options,
                      std::int64_t size) {
  switch (result.outcome) {
    case ShardOutcome::too_small:
      return fmt::format("{} elements are not more than min_weight_size={}",
                         product(result.array.shape), options.min_weight_size);
    case ShardOutcome::no_dimension:
      return fmt::format("no dimension divides by {}", size);
    case ShardOutcome::already_sharded:
    case ShardOutcome::sharded:
      break;
  }
  return "";
}

}  // namespace

BoxName read_box_name(const JsonReader& json) {
  if (json.is_string()) return {{json.string()}, false};
  BoxName name{{}, true};
  for (const JsonReader& axis : json.elements()) name.axes.push_back(axis.string());
  if (name.axes.empty()) json.fail("names no axis");
  return name;
}

std::string to_string(const BoxName& name) {
  return name.is_tuple ? fmt::format("({})", fmt::join(name.axes, ", ")) : name.axes[0];
}

PartitionSpec spec_of(const BoxedArray& array) {
  PartitionSpec spec;
  if (!array.names) return spec;
  for (const std::optional<BoxName>& name : *array.names) {
    spec.push_back(name ? SpecEntry(name->axes) : SpecEntry());
  }
  return spec;
}

std::int64_t axis_size(const BoxName& axis, const Mesh& mesh, const Place& place) {
  std::int64_t size = 1;
  for (const std::string& name : axis.axes) {
    const std::optional<int> found = mesh.find(name);
    if (!found) {
      std::vector<std::string> known;
      for (const MeshAxis& candidate : mesh.axes()) known.push_back(candidate.name);
      throw RuleError(
          "NameError", place,
          fmt::format("axis \"{}\" is not in the mesh ({})", name, fmt::join(known, ", ")),
          closest(name, known));
    }
    size *= mesh.axes()[static_cast<std::size_t>(*found)].size;
  }
  return size;
}

ShardedParameter shard_params(const BoxedArray& array, const BoxName& axis, std::int64_t axis_size,
                              std::int64_t min_weight_size, EqualDimensions ties,
                              const Place& place) {
  const BoxNames names = array.names.value_or(BoxNames(array.shape.size()));
  assert(names.size() == array.shape.size());
  if (std::find(names.begin(), names.end(), std::optional(axis)) != names.end()) {
    return {array, ShardOutcome::already_sharded, std::nullopt};
  }
  if (product(array.shape) <= min_weight_size) {
    return {array, ShardOutcome::too_small, std::nullopt};
  }
  for (const std::size_t d : largest_dimensions_first(array.shape, ties, place)) {
    if (array.shape[d] % axis_size != 0 || names[d]) continue;
    ShardedParameter result{{array.shape, names}, ShardOutcome::sharded, d};
    result.array.shape[d] /= axis_size;
    (*result.array.names)[d] = axis;
    return result;
  }
  return {array, ShardOutcome::no_dimension, std::nullopt};
}

GatheredArray gather_params(const BoxedArray& array, const BoxName& axis, std::int64_t axis_size) {
  if (!array.names) return {array, std::nullopt};
  const auto found = std::find(array.names->begin(), array.names->end(), std::optional(axis));
  if (found == array.names->end()) return {array, std::nullopt};
  const auto d = static_cast<std::size_t>(found - array.names->begin());
  GatheredArray result{array, d};
  result.array.shape[d] *= axis_size;
  BoxNames& names = *result.array.names;
  names[d].reset();
  const bool is_named =
      std::any_of(names.begin(), names.end(), [](const auto& name) { return name.has_value(); });
  if (!is_named) result.array.names.reset();
  return result;
}

std::vector<std::string> sync_gradients(const std::optional<BoxNames>& names, const SyncAxes& axes,
                                        const Place& place) {
  if (!names) return axes.axes;
  std::vector<std::string> candidates = axes.axes;
  if (axes.is_bare_string) {
    candidates.clear();
    for (const char letter : axes.axes[0]) candidates.emplace_back(1, letter);
  }
  std::vector<std::string> left;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(left),
               [&](const std::string& axis) {
                 return std::none_of(names->begin(), names->end(),
                                     [&](const auto& name) { return holds(name, axis); });
               });
  if (axes.is_bare_string && candidates.size() > 1 && !left.empty()) {
    throw RuleError(
        "NameError", place,
        fmt::format("the axes \"{0}\" are taken letter by letter; [\"{0}\"] is the axis",
                    axes.axes[0]));
  }
  return left;
}

FsdpTutorial read_fsdp_tutorial(const JsonReader& strategy) {
  FsdpTutorial options;
  options.axis = read_box_name(strategy.at("axis"));
  if (const auto size = strategy.find("min_weight_size")) {
    options.min_weight_size = size->integer(0, std::numeric_limits<std::int64_t>::max());
  }
  if (const auto ties = strategy.find("argsort")) options.ties = read_equal_dimensions(*ties);
  return options;
}

SpecAssignment assign_fsdp_tutorial(const ParameterTree& tree, const Mesh& mesh,
                                    const JsonReader& strategy) {
  const FsdpTutorial options = read_fsdp_tutorial(strategy);
  const std::int64_t size = axis_size(options.axis, mesh, strategy.at("axis").place());
  SpecAssignment assignment;
  for (const ParameterLeaf& leaf : tree.leaves) {
    LeafSpec& result = assignment.leaves.emplace_back();
    result.tactic = leaf.has_shape ? "shard_params: whole" : "no array";
    if (!leaf.has_shape) continue;
    const ShardedParameter sharded =
        shard_params({leaf.shape, std::nullopt}, options.axis, size, options.min_weight_size,
                     options.ties, strategy.place());
    result.spec = spec_of(sharded.array);
    result.reason = reason_of(sharded, options, size);
    if (sharded.dimension) {
      result.tactic = fmt::format("shard_params: dimension {} over {}", *sharded.dimension,
                                  to_string(options.axis));
    }
  }
  return assignment;
}

}  // namespace shardsim
