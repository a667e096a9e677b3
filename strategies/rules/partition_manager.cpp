#include "strategies/rules/partition_manager.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/match_partition_rules.hpp"

namespace shardsim {
namespace {

using Dims = std::vector<AxisRule>;

AxisRule one(std::string_view name) { return {std::string(name)}; }

const std::vector<std::pair<std::string, Dims>>& named_dims_table() {
  static const AxisRule dp = one("__DP__");
  static const AxisRule fsdp = one("__FSDP__");
  static const AxisRule tp = one("__TP__");
  static const AxisRule sp = one("__SP__");
  static const AxisRule ep = one("__EP__");
  static const AxisRule whole = one(whole_dimension);
  static const AxisRule fsdp_sp{Dims{fsdp, sp}};
  static const AxisRule fsdp_sp_ep{Dims{fsdp, sp, ep}};
  static const std::vector<std::pair<std::string, Dims>> table = {
      {"ColumnWise", {fsdp_sp, tp}},
      {"RowWise", {tp, fsdp_sp}},
      {"SColumnWise", {fsdp_sp}},
      {"SRowWise", {tp}},
      {"Replicated", {whole}},
      {"ExpertColumnWise", {ep, fsdp, tp}},
      {"ExpertRowWise", {ep, tp, fsdp}},
      {"ExpertColumnWiseAlt", {ep, fsdp_sp, tp}},
      {"ExpertRowWiseAlt", {ep, tp, fsdp_sp}},
      {"UnifiedExpertColumnWise", {fsdp_sp_ep, whole, tp}},
      {"UnifiedExpertRowWise", {fsdp_sp_ep, tp, whole}},
      {"ExpertTensorParallel", {tp, whole, whole}},
      {"ExpertActivations", {dp, sp, ep, tp}},
      {"ExpertActivationsAlt", {dp, sp, AxisRule{Dims{tp, fsdp}}}},
  };
  return table;
}

Dims read_dims(const JsonReader& json) {
  if (json.is_string()) {
    if (const Dims* dims = find_named_dims(json.string())) return *dims;
    throw RuleError("ValueError", json.place(),
                    fmt::format("unknown sharding \"{}\"", json.string()),
                    closest(json.string(), named_dims()));
  }
  Dims dims;
  for (const JsonReader& dim : json.elements()) dims.push_back(read_axis_rule(dim));
  return dims;
}

// {"__A__": rule, "__B__": {"rule": rule, "generation": rule}}; what eformer knows is overridden.
SemanticAxes read_semantic_axes(const JsonReader& json) {
  SemanticAxes axes;
  for (const auto& [name, rule] : json.members()) {
    if (!rule.is_object()) {
      axes.add(name, read_axis_rule(rule), {}, /*override_known=*/true, rule.place());
      continue;
    }
    rule.only_keys({"rule", "generation"});
    const bool has_generation = rule.json().contains("generation");
    axes.add(name, read_axis_rule(rule.at("rule")),
             has_generation ? std::optional(read_axis_rule(rule.at("generation"))) : std::nullopt,
             /*override_known=*/true, rule.place());
  }
  return axes;
}

PartitionManager read_manager(const JsonReader& strategy) {
  constexpr auto version = PartitionAxis::Version::later;
  const auto overrides = strategy.find("partition_axis");
  const auto names = strategy.find("semantic_axes");
  return {overrides ? PartitionAxis(version, *overrides) : PartitionAxis(version),
          names ? read_semantic_axes(*names) : SemanticAxes()};
}

std::string read_mode(const JsonReader& strategy) {
  const auto mode = strategy.find("mode");
  return mode ? mode->choice({"__train__", "__prefill__", "__autoregressive__", "__insert__"})
              : std::string(train_mode);
}

// The reason of a leaf tells what was dropped first.
void correct(LeafSpec& result, const ParameterLeaf& leaf, const Mesh& mesh, const Place& place) {
  const PartitionSpec asked = result.spec;
  result.spec = corrected_spec(asked, leaf.shape, mesh, place);
  const auto kept = [&](std::size_t dim) {
    return dim < result.spec.size() && result.spec[dim] == asked[dim];
  };
  for (std::size_t dim = 0; dim < std::min(asked.size(), leaf.shape.size()); ++dim) {
    if (asked[dim].is_whole() || kept(dim) || !result.reason.empty()) continue;
    result.reason = fmt::format("{} dropped: it does not divide {}, or is not in the mesh",
                                to_string(PartitionSpec{asked[dim]}), leaf.shape[dim]);
  }
}

}  // namespace

bool is_generation(std::string_view mode) { return mode == decode_mode || mode == "__insert__"; }

std::string_view mode_of_dimension(std::int64_t dim,
                                   const std::optional<std::vector<std::int64_t>>& shape,
                                   const Place& place) {
  if (!shape) {
    throw RuleError("ValueError", place, "a mode that is a dimension needs the tensor's shape");
  }
  const auto rank = static_cast<std::int64_t>(shape->size());
  if (dim < -rank || dim >= rank) {
    throw RuleError("IndexError", place,
                    fmt::format("mode is dimension {} of a tensor that has {}", dim, rank));
  }
  const std::int64_t size = (*shape)[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)];
  return size == 1 ? decode_mode : train_mode;
}

std::vector<AxisRule> PartitionManager::resolve_axes(const std::vector<AxisRule>& dims,
                                                     std::string_view mode,
                                                     const Place& place) const {
  std::vector<AxisRule> axes;
  for (const AxisRule& dim : dims) axes.push_back(resolve_dim(dim, is_generation(mode), place));
  return axes;
}

PartitionSpec PartitionManager::resolve(const std::vector<AxisRule>& dims, std::string_view mode,
                                        const Place& place) const {
  PartitionSpec spec;
  for (const AxisRule& axis : resolve_axes(dims, mode, place)) {
    spec.push_back(to_spec_entry(axis, place));
  }
  return spec;
}

bool PartitionManager::knows(std::string_view name) const {
  return name == whole_dimension || !names_.find(name).is_none();
}

AxisRule PartitionManager::resolve_dim(const AxisRule& dim, bool generation,
                                       const Place& place) const {
  if (dim.is_none() || dim == one(whole_dimension)) return {};
  if (const std::string* name = dim.name()) {
    AxisRule rule = names_.find(*name);
    if (rule.is_none()) {
      throw RuleError("ValueError", place, fmt::format("unknown semantic axis \"{}\"", *name),
                      closest(*name, names_.names()));
    }
    return follow(generation ? for_generation(*name, std::move(rule)) : rule, {}, place);
  }
  std::vector<AxisRule> parts;
  for (const AxisRule& part : *dim.list()) {
    if (part.list() != nullptr) {
      throw RuleError("TypeError", place,
                      fmt::format("{}: a list of names within a list", to_json(dim).dump()));
    }
    const AxisRule rule = part.is_none() ? AxisRule{} : names_.find(*part.name());
    if (rule.is_none()) {
      parts.push_back(part);  // a mesh axis
    } else {
      parts.push_back(generation ? for_generation(*part.name(), rule) : rule);
    }
  }
  return follow({std::move(parts)}, {}, place);
}

// What the name stands for when generating; a decode_* field that is null does not count.
AxisRule PartitionManager::for_generation(std::string_view name, AxisRule rule) const {
  if (const AxisRule* own = names_.find_generation(name)) return *own;
  if (rule.name() == nullptr) return rule;
  const std::string_view twin = generation_twin(*rule.name());
  const AxisRule* value = twin.empty() ? nullptr : axis_.find(twin);
  return value == nullptr || value->is_none() ? std::move(rule) : one(twin);
}

// Fields before names, names until nothing is known of them. Each element of a list has a history
// of its own, so that a name may come twice without being a circle.
AxisRule PartitionManager::follow(const AxisRule& rule, std::set<std::string> visited,
                                  const Place& place) const {
  if (const std::vector<AxisRule>* list = rule.list()) {
    std::vector<AxisRule> parts;
    for (const AxisRule& part : *list) parts.push_back(follow(part, visited, place));
    return {std::move(parts)};
  }
  if (rule.is_none()) return rule;
  const std::string& name = *rule.name();
  if (const AxisRule* value = axis_.find(name)) return *value;
  const AxisRule next = names_.find(name);
  if (next.is_none()) return rule;
  if (!visited.insert(name).second) {
    throw RuleError("ValueError", place,
                    fmt::format("semantic axis \"{}\" stands for itself, in a circle", name));
  }
  return follow(next, std::move(visited), place);
}

const std::vector<AxisRule>* find_named_dims(std::string_view name) {
  const auto& table = named_dims_table();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == name; });
  return found == table.end() ? nullptr : &found->second;
}

std::vector<std::string> named_dims() {
  std::vector<std::string> names;
  for (const auto& [name, dims] : named_dims_table()) names.push_back(name);
  return names;
}

PartitionSpec corrected_spec(const PartitionSpec& spec, const std::vector<std::int64_t>& shape,
                             const Mesh& mesh, const Place& place) {
  if (spec.empty()) return {};
  PartitionSpec corrected = spec;
  corrected.resize(shape.size());
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    std::int64_t shards = 1;
    bool fits = !corrected[dim].unconstrained;
    for (const std::string& name : corrected[dim].axes) {
      const std::optional<int> axis = mesh.find(name);
      fits = fits && axis.has_value();
      if (axis) shards *= mesh.whole(*axis).size;
    }
    if (!fits || shape[dim] % shards != 0) corrected[dim] = {};
  }
  check_axes(corrected, mesh, place);
  const bool all_whole = std::all_of(corrected.begin(), corrected.end(),
                                     [](const SpecEntry& entry) { return entry.is_whole(); });
  return all_whole ? PartitionSpec{} : corrected;
}

PartitionSpec read_managed_activation(const JsonReader& spec, const JsonReader& strategy) {
  const PartitionManager manager = read_manager(strategy);
  Dims dims = read_dims(spec);
  for (AxisRule& dim : dims) {
    // Inside a list a name may be an axis.
    if (dim.name() != nullptr && !manager.knows(*dim.name())) dim = {Dims{dim}};
  }
  return manager.resolve(dims, read_mode(strategy), spec.place());
}

SpecAssignment assign_partition_manager(const ParameterTree& tree, const Mesh& mesh,
                                        const JsonReader& strategy) {
  const PartitionManager manager = read_manager(strategy);
  const std::string mode = read_mode(strategy);
  const JsonReader rules_given = strategy.at("rules");
  const std::vector<SpecRule> rules = read_spec_rules(rules_given, [&](const JsonReader& json) {
    return manager.resolve(read_dims(json), mode, json.place());
  });
  SpecAssignment assignment =
      match_partition_rules(rules, tree, read_match_options(strategy), rules_given.place());
  const auto corrects = strategy.find("correct");
  if (!corrects || !corrects->boolean()) return assignment;
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    correct(assignment.leaves[i], tree.leaves[i], mesh, rules_given.place());
  }
  return assignment;
}

}  // namespace shardsim
