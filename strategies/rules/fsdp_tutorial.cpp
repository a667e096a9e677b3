#include "strategies/rules/fsdp_tutorial.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <numeric>

#include "base/json.hpp"
#include "base/units.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/rule_matches.hpp"

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
  const std::string_view where = result.array.names ? " of a device" : "";
  switch (result.outcome) {
    case ShardOutcome::too_small:
      return fmt::format("{} elements{} are not more than min_weight_size={}",
                         product(result.array.shape), where, options.min_weight_size);
    case ShardOutcome::no_dimension:
      return fmt::format("no {}dimension divides by {}", result.array.names ? "free " : "", size);
    case ShardOutcome::not_wrapped:
      return "its module is not among \"modules\"";
    case ShardOutcome::already_sharded:
    case ShardOutcome::sharded:
      break;
  }
  return "";
}

// As Python prints tuples.
std::string tuple_text(const std::vector<std::string>& items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

std::string python_text(const BoxNames& names) {
  std::vector<std::string> items;
  for (const std::optional<BoxName>& name : names) {
    std::vector<std::string> axes;
    if (name) {
      for (const std::string& axis : name->axes) axes.push_back(fmt::format("'{}'", axis));
    }
    items.push_back(!name ? "None" : name->is_tuple ? tuple_text(axes) : axes[0]);
  }
  return tuple_text(items);
}

// What shard_params logs.
std::string logged_of(const ShardedParameter& result, const std::string& name,
                      const FsdpTutorial& options) {
  const bool already = result.outcome == ShardOutcome::already_sharded;
  if (!already && result.outcome != ShardOutcome::no_dimension) return "";
  std::vector<std::string> sizes;
  for (const std::int64_t size : result.array.shape) sizes.push_back(std::to_string(size));
  const std::string what =
      fmt::format("{} with names {}", tuple_text(sizes),
                  python_text(result.array.names.value_or(BoxNames(result.array.shape.size()))));
  const std::string axis = to_string(options.axis);
  return already ? fmt::format("{}: parameter {} already sharded on axis {}", name, what, axis)
                 : fmt::format("{}: could not shard {} on axis {}, no suitable axis found", name,
                               what, axis);
}

std::vector<WrappedModule> read_modules(const JsonReader& json) {
  std::vector<WrappedModule> modules;
  for (const JsonReader& pattern : json.elements()) {
    modules.push_back(
        {Pattern(pattern.string(), pattern.place()), pattern.string(), pattern.place()});
  }
  return modules;
}

std::vector<PartitionedRule> read_partitioned(const JsonReader& json) {
  std::vector<PartitionedRule> rules;
  for (const JsonReader& pair : json.elements()) {
    const std::vector<JsonReader> parts = pair.elements();
    if (parts.size() != 2)
      pair.fail("expected [pattern, names], for example [\"up$\", [null, \"tp\"]]");
    BoxNames names;
    for (const JsonReader& name : parts[1].elements()) {
      names.push_back(name.is_null() ? std::nullopt : std::optional(read_box_name(name)));
    }
    rules.push_back({Pattern(parts[0].string(), parts[0].place()), names,
                     fmt::format("{} -> {}", parts[0].string(), parts[1].json().dump()),
                     pair.place()});
  }
  return rules;
}

template <class Rules>
std::vector<std::size_t> found_in(const std::string& name, const Rules& rules) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].pattern.search(name)) found.push_back(i);
  }
  return found;
}

template <class Rules>
RuleMatches counts_of(const Rules& rules, std::string_view label) {
  std::vector<RuleUse> uses;
  for (const auto& rule : rules)
    uses.push_back({fmt::format("{} {}", label, rule.text), rule.place});
  return RuleMatches(std::move(uses));
}

std::string tactic_of(const ShardedParameter& result, const BoxedArray& before,
                      const FsdpTutorial& options) {
  const std::string box = before.names ? to_string(spec_of(before)) : "";
  std::string tactic = result.dimension ? fmt::format("shard_params: dimension {} over {}",
                                                      *result.dimension, to_string(options.axis))
                       : box.empty()    ? "shard_params: whole"
                                        : "shard_params: as it was";
  if (result.outcome == ShardOutcome::not_wrapped) tactic = "not wrapped by shard_module_params";
  if (!box.empty())
    tactic += fmt::format(", {} {}", result.dimension ? "on top of" : "partitioned", box);
  return tactic;
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

TutorialMatches matches_of(const std::string& name, const FsdpTutorial& options) {
  TutorialMatches matches{{}, found_in(name, options.partitioned)};
  if (options.modules) matches.modules = found_in(name, *options.modules);
  return matches;
}

BoxedArray before_sharding(const ParameterLeaf& leaf, const FsdpTutorial& options,
                           const Mesh& mesh) {
  BoxedArray array{leaf.shape, std::nullopt};
  const std::vector<std::size_t> matching = matches_of(leaf.name, options).partitioned;
  if (matching.empty()) return array;
  const PartitionedRule& rule = options.partitioned[matching.front()];
  if (rule.names.size() != leaf.shape.size()) {
    throw RuleError("ValueError", rule.place,
                    fmt::format("{} names for the {} dimensions of \"{}\"", rule.names.size(),
                                leaf.shape.size(), leaf.name));
  }
  array.names = rule.names;
  for (std::size_t d = 0; d < rule.names.size(); ++d) {
    if (!rule.names[d]) continue;
    array.shape[d] = ceil_div(leaf.shape[d], axis_size(*rule.names[d], mesh, rule.place));
  }
  return array;
}

ShardedParameter after_sharding(const ParameterLeaf& leaf, const FsdpTutorial& options,
                                const Mesh& mesh, const Place& place) {
  const BoxedArray array = before_sharding(leaf, options, mesh);
  if (options.modules && matches_of(leaf.name, options).modules.empty()) {
    return {array, ShardOutcome::not_wrapped, std::nullopt};
  }
  return shard_params(array, options.axis, axis_size(options.axis, mesh, place),
                      options.min_weight_size, options.ties, place);
}

FsdpTutorial read_fsdp_tutorial(const JsonReader& strategy) {
  FsdpTutorial options;
  options.axis = read_box_name(strategy.at("axis"));
  if (const auto size = strategy.find("min_weight_size")) {
    options.min_weight_size = size->integer(0, std::numeric_limits<std::int64_t>::max());
  }
  if (const auto ties = strategy.find("argsort")) options.ties = read_equal_dimensions(*ties);
  if (const auto modules = strategy.find("modules")) options.modules = read_modules(*modules);
  if (const auto boxes = strategy.find("partitioned")) {
    options.partitioned = read_partitioned(*boxes);
  }
  return options;
}

SpecAssignment assign_fsdp_tutorial(const ParameterTree& tree, const Mesh& mesh,
                                    const JsonReader& strategy) {
  const FsdpTutorial options = read_fsdp_tutorial(strategy);
  const Place axis_place = strategy.at("axis").place();
  const std::int64_t size = axis_size(options.axis, mesh, axis_place);
  RuleMatches modules({});
  if (options.modules) modules = counts_of(*options.modules, "modules");
  RuleMatches partitioned = counts_of(options.partitioned, "partitioned");
  SpecAssignment assignment;
  for (const ParameterLeaf& leaf : tree.leaves) {
    LeafSpec& result = assignment.leaves.emplace_back();
    result.tactic = "no array";
    if (!leaf.has_shape) continue;
    const TutorialMatches matches = matches_of(leaf.name, options);
    static_cast<void>(modules.add(matches.modules));
    static_cast<void>(partitioned.add(matches.partitioned));
    const ShardedParameter sharded = after_sharding(leaf, options, mesh, axis_place);
    result.spec = spec_of(sharded.array);
    result.reason = reason_of(sharded, options, size);
    result.tactic = tactic_of(sharded, before_sharding(leaf, options, mesh), options);
    const std::string logged = logged_of(sharded, leaf.name, options);
    if (!logged.empty()) assignment.warnings.push_back(logged);
  }
  assignment.rules = modules.uses();
  const std::size_t before = assignment.rules.size();
  for (RuleUse& use : partitioned.uses()) {
    if (use.shadowed_by) *use.shadowed_by += before;
    assignment.rules.push_back(std::move(use));
  }
  return assignment;
}

}  // namespace shardsim
