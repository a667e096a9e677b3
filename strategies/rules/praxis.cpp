#include "strategies/rules/praxis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/praxis_split_dims.hpp"
#include "strategies/rules/rule_matches.hpp"

namespace shardsim {
namespace {

const std::string no_array = "no array";

struct MappingRule {
  Pattern pattern;
  std::optional<SplitDims> split;  // nothing: whole
};

// [[pattern, mapping], ...] and how often each is used.
class MappingRules {
 public:
  MappingRules(const std::optional<JsonReader>& json, const std::vector<std::string>& mesh_axes,
               std::string_view label) {
    if (!json) return;
    std::vector<RuleUse> uses;
    for (const JsonReader& pair : json->elements()) {
      const std::vector<JsonReader> parts = pair.elements();
      if (parts.size() != 2) pair.fail("a rule is [pattern, split-dims mapping]");
      std::optional<SplitDims> split;
      if (!parts[1].is_null()) split = read_split_dims(parts[1], mesh_axes);
      rules_.push_back({Pattern(parts[0].string(), parts[0].place()), std::move(split)});
      uses.push_back({fmt::format("{} -> {}{}", parts[0].string(), label, parts[1].json().dump()),
                      pair.place()});
      places_.push_back(pair.place());
    }
    matches_ = RuleMatches(std::move(uses));
  }

  // The first rule that matches.
  RuleIndex decide(const std::string& name) {
    std::vector<std::size_t> matching;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i].pattern.search(name)) matching.push_back(i);
    }
    return matches_.add(matching);
  }

  [[nodiscard]] const std::optional<SplitDims>& split(std::size_t rule) const {
    return rules_[rule].split;
  }
  [[nodiscard]] const Place& place(std::size_t rule) const { return places_[rule]; }
  [[nodiscard]] std::vector<RuleUse> uses() const { return matches_.uses(); }
  [[nodiscard]] std::size_t size() const { return rules_.size(); }

 private:
  std::vector<MappingRule> rules_;
  std::vector<Place> places_;
  RuleMatches matches_{{}};
};

void check_prefixes(const JsonReader& prefixes) {
  for (const JsonReader& pair : prefixes.elements()) {
    const std::vector<JsonReader> parts = pair.elements();
    if (parts.size() == 2 && parts[1].is_null()) {
      parts[1].fail("a prefix needs an entry for every stacked dimension, null where it is whole");
    }
  }
}

SpecAssignment assign_weights(const ParameterTree& tree, const std::vector<std::string>& mesh_axes,
                              const JsonReader& strategy) {
  const auto prefix_json = strategy.find("repeat_prefix");
  if (prefix_json) check_prefixes(*prefix_json);
  MappingRules weights(strategy.at("weights"), mesh_axes, "");
  MappingRules prefixes(prefix_json, mesh_axes, "repeat_prefix ");
  SpecAssignment assignment;
  for (const ParameterLeaf& leaf : tree.leaves) {
    LeafSpec& result = assignment.leaves.emplace_back();
    if (!leaf.has_shape) {
      result.tactic = no_array;
      continue;
    }
    result.rule = weights.decide(leaf.name);
    const RuleIndex prefix_rule = prefixes.decide(leaf.name);
    const Place& place = result.rule   ? weights.place(*result.rule)
                         : prefix_rule ? prefixes.place(*prefix_rule)
                                       : strategy.place();
    WeightSplit weight{leaf.name, leaf.shape.size(), {}, 0, {}};
    if (result.rule) weight.tensor = weights.split(*result.rule);
    if (prefix_rule) weight.prefix = prefixes.split(*prefix_rule);
    weight.prefix_rank = weight.prefix ? weight.prefix->size() : 0;
    if (weight.prefix_rank > leaf.shape.size()) {
      throw RuleError("AssertionError", prefixes.place(*prefix_rule),
                      fmt::format("\"{}\" has {} dimensions, fewer than its prefix of {}",
                                  leaf.name, leaf.shape.size(), weight.prefix_rank));
    }
    weight.rank -= weight.prefix_rank;
    result.spec = to_partition_spec(weight_split_dims(weight, place), place);
    if (!prefix_rule) continue;
    // Rules of prefixes come behind those of weights.
    const std::size_t prefix = weights.size() + *prefix_rule;
    result.dimension_rules.assign(weight.prefix_rank, prefix);
    result.dimension_rules.resize(leaf.shape.size(), result.rule);
    if (!result.rule) result.rule = prefix;
  }
  assignment.rules = weights.uses();
  for (RuleUse& use : prefixes.uses()) {
    if (use.shadowed_by) *use.shadowed_by += weights.size();
    assignment.rules.push_back(std::move(use));
  }
  return assignment;
}

// The rank N of a key "map_Nd".
std::optional<std::size_t> rank_of_key(const std::string& key) {
  constexpr std::string_view prefix = "map_";
  if (!key.starts_with(prefix) || !key.ends_with('d')) return std::nullopt;
  const std::string digits = key.substr(prefix.size(), key.size() - prefix.size() - 1);
  const bool is_rank =
      !digits.empty() && digits.size() <= 2 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_rank ? std::optional(static_cast<std::size_t>(std::stoi(digits))) : std::nullopt;
}

// Of "inputs_split_mapping", by falling N: the key, which has to be a map_Nd, and its mapping.
std::map<std::size_t, JsonReader, std::greater<>> mappings_by_rank(const JsonReader& maps) {
  std::map<std::size_t, JsonReader, std::greater<>> mappings;
  for (const auto& [key, mapping] : maps.members()) {
    const std::optional<std::size_t> rank = rank_of_key(key);
    if (!rank) mapping.fail("a key is \"map_1d\", \"map_2d\", ...: a mapping by an input's rank");
    mappings.emplace(*rank, mapping);
  }
  return mappings;
}

}  // namespace

SpecAssignment assign_praxis(const ParameterTree& tree, const Mesh& mesh,
                             const JsonReader& strategy) {
  return assign_weights(tree, axis_names(mesh), strategy);
}

SystemAxes praxis_axes(const JsonReader& strategy, const Mesh& mesh) {
  SystemAxes axes;
  axes.roles = {{"replica", AxisRole::batch}, {"data", AxisRole::batch}, {"mdl", AxisRole::model}};
  axes.batch = {"replica", "data"};
  const auto maps = strategy.find("inputs_split_mapping");
  if (!maps) return axes;
  const std::vector<std::string> mesh_axes = axis_names(mesh);
  axes.batch = mesh_axes;
  axes.batch_is_said = true;
  bool is_first = true;
  for (const auto& [rank, mapping] : mappings_by_rank(*maps)) {
    if (mapping.is_null()) continue;
    PartitionSpec spec = to_partition_spec(read_split_dims(mapping, mesh_axes), mapping.place());
    if (rank == 0) continue;
    spec.resize(std::max<std::size_t>(spec.size(), 2));
    if (!is_first && spec[0].axes != axes.batch) {
      mapping.fail(
          fmt::format("splits the batch over {}, another mapping over {}: the inputs of "
                      "a step have one batch",
                      to_string({spec[0]}), to_string({SpecEntry(axes.batch)})));
    }
    is_first = false;
    axes.batch = spec[0].axes;
    if (rank == 2) axes.sequence = spec[1].axes;
  }
  return axes;
}

void refuse_keys_of_inputs(const JsonReader& strategy) {
  for (const auto& [key, value] : strategy.members()) {
    if (rank_of_key(key)) {
      value.fail(fmt::format("\"{0}\" is of inputs: \"inputs_split_mapping\": {{\"{0}\": {1}}}",
                             key, value.json().dump()));
    }
    if (key == "shard_on_batch_dim") {
      value.fail("inputs enter so, weights do not; \"weights\" says how these are split");
    }
  }
}

std::optional<std::vector<std::string>> praxis_entering_axes(const JsonReader& strategy,
                                                             const Mesh& mesh) {
  if (!strategy.find("inputs_split_mapping")) return std::nullopt;
  return axis_names(mesh);
}

std::optional<InputSpecs> praxis_inputs(std::size_t rank, const JsonReader& strategy,
                                        const Mesh& mesh) {
  const auto maps = strategy.find("inputs_split_mapping");
  if (!maps) return std::nullopt;
  const std::vector<std::string> mesh_axes = axis_names(mesh);
  InputSpecs specs;
  specs.entering =
      to_partition_spec(batch_split_dims(rank, mesh_axes, maps->place()), maps->place());
  const std::optional<SplitDims> split = split_dims_by_rank(*maps, rank, mesh_axes);
  specs.read = split ? to_partition_spec(*split, maps->place()) : specs.entering;
  return specs;
}

Json inputs_split_mapping_of(const std::vector<std::string>& batch,
                             const std::vector<std::string>& sequence) {
  constexpr std::size_t most_dimensions = 4;
  const auto entry = [](const std::vector<std::string>& axes) {
    return axes.empty() ? Json(nullptr) : Json(axes);
  };
  Json maps = Json::object();
  for (std::size_t rank = 1; rank <= most_dimensions; ++rank) {
    Json mapping = Json::array({entry(batch)});
    for (std::size_t d = 1; d < rank; ++d) mapping.push_back(nullptr);
    if (rank == 2) mapping[1] = entry(sequence);
    maps[fmt::format("map_{}d", rank)] = std::move(mapping);
  }
  return maps;
}

}  // namespace shardsim
