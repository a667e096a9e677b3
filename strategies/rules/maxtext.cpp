#include "strategies/rules/maxtext.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

std::int64_t size_of_axis(const std::string& axis, const Mesh& mesh, const Place& place) {
  if (const auto part = mesh.parse(axis)) return part->size;
  std::vector<std::string> known;
  for (const MeshAxis& candidate : mesh.axes()) known.push_back(candidate.name);
  throw RuleError("KeyError", place, fmt::format("axis \"{}\" is not in the mesh", axis),
                  closest(axis, known));
}

std::int64_t size_of_entry(const SpecEntry& entry, const Mesh& mesh, const Place& place) {
  std::int64_t size = 1;
  for (const std::string& axis : entry.axes) size *= size_of_axis(axis, mesh, place);
  return size;
}

std::vector<std::int64_t> all_dims(const PartitionSpec& spec) {
  std::vector<std::int64_t> dims(spec.size());
  std::iota(dims.begin(), dims.end(), std::int64_t{0});
  return dims;
}

// What Python's list[index] reads; nothing for an IndexError.
std::optional<std::size_t> python_index(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < -count || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + count : index);
}

// With the model's over those of the base configuration.
LogicalAxisRules all_rules(const JsonReader& strategy) {
  const LogicalAxisRules rules = read_logical_axis_rules(strategy.at("rules"));
  const auto added = strategy.find("model_rules");
  return added ? merge_logical_axis_rules(rules, read_logical_axis_rules(*added)) : rules;
}

PartitionSpec fitted(const PartitionSpec& spec, const std::string& fit, const ParameterLeaf& leaf,
                     const Mesh& mesh) {
  if (fit == "keep") return spec;
  check_axes(spec, mesh, leaf.place);
  if (fit == "per_axis") return adjust_for_indivisible_shape(spec, leaf.shape, mesh, leaf.place);
  return remove_incompatible_axes(spec, leaf.shape, mesh, all_dims(spec),
                                  /*allow_remove_axes=*/fit == "whole_entry", leaf.place);
}

// Why `fit` took axes from the spec; empty when it did not.
std::string fit_reason(const PartitionSpec& before, const PartitionSpec& after,
                       const ParameterLeaf& leaf, const Mesh& mesh) {
  for (std::size_t d = 0; d < before.size(); ++d) {
    if (before[d] == after[d]) continue;
    return fmt::format("dimension {} does not divide: {} over {}", d, leaf.shape[d],
                       size_of_entry(before[d], mesh, leaf.place));
  }
  return "";
}

}  // namespace

LogicalAxisRules merge_logical_axis_rules(const LogicalAxisRules& base,
                                          const LogicalAxisRules& added) {
  LogicalAxisRules rules;
  for (const LogicalAxisRule& rule : base) {
    const bool replaced =
        std::any_of(added.begin(), added.end(),
                    [&](const LogicalAxisRule& other) { return other.name == rule.name; });
    if (!replaced) rules.push_back(rule);
  }
  rules.insert(rules.end(), added.begin(), added.end());
  return rules;
}

PartitionSpec remove_size_one_mesh_axes(const PartitionSpec& spec, const Mesh& mesh) {
  PartitionSpec result = spec;
  for (SpecEntry& entry : result) {
    std::erase_if(entry.axes, [&](const std::string& axis) {
      const auto part = mesh.parse(axis);
      return !part || part->size == 1;
    });
  }
  return result;
}

PartitionSpec adjust_for_indivisible_shape(const PartitionSpec& spec,
                                           const std::vector<std::int64_t>& shape, const Mesh& mesh,
                                           const Place& place) {
  PartitionSpec result = spec;
  for (std::size_t d = 0; d < std::min(spec.size(), shape.size()); ++d) {
    result[d].axes.clear();
    std::int64_t shards = 1;
    for (const std::string& axis : spec[d].axes) {
      const std::int64_t with_axis = shards * size_of_axis(axis, mesh, place);
      if (shape[d] % with_axis != 0) continue;
      shards = with_axis;
      result[d].axes.push_back(axis);
    }
  }
  return result;
}

PartitionSpec remove_incompatible_axes(const PartitionSpec& spec,
                                       const std::vector<std::int64_t>& shape, const Mesh& mesh,
                                       const std::vector<std::int64_t>& dims,
                                       bool allow_remove_axes, const Place& place) {
  PartitionSpec result = spec;
  for (const std::int64_t dim : dims) {
    const std::optional<std::size_t> entry = python_index(dim, spec.size());
    const std::optional<std::size_t> d = python_index(dim, shape.size());
    if (!entry || !d) {
      throw RuleError("IndexError", place,
                      fmt::format("{} on {} dimensions has no dimension {}", to_string(spec),
                                  shape.size(), dim));
    }
    const std::int64_t shards = size_of_entry(spec[*entry], mesh, place);
    if (shape[*d] % shards == 0) continue;
    if (!allow_remove_axes) {
      throw RuleError("ValueError", place,
                      fmt::format("dimension {} of {} does not divide: {} over {}", *d,
                                  to_string(spec), shape[*d], shards));
    }
    result[*entry] = SpecEntry{};
  }
  return result;
}

SystemAxes maxtext_axes(const JsonReader& strategy, const Mesh& /*mesh*/) {
  SystemAxes axes;
  axes.roles = {{"tensor_transpose", AxisRole::model},
                {"autoregressive", AxisRole::model},
                {"context_usp_ulysses", AxisRole::context},
                {"context_autoregressive", AxisRole::context}};
  const LogicalAxisRules rules = strategy.find("rules") ? all_rules(strategy) : LogicalAxisRules{};
  const auto batch = axes_of_rule(rules, "activation_batch");
  axes.batch = batch.value_or(std::vector<std::string>{"data", "fsdp", "fsdp_transpose", "expert"});
  axes.batch_is_said = batch.has_value();
  axes.sequence =
      axes_of_rule(rules, "activation_length")
          .value_or(std::vector<std::string>{"sequence", "context", "context_usp_ulysses"});
  axes.experts = axes_of_rule(rules, "exp").value_or(std::vector<std::string>{});
  return axes;
}

std::string_view view_of_maxtext(const JsonReader& strategy) {
  if (!strategy.find("rules")) return "maxtext";  // whose absence is an error elsewhere
  const LogicalAxisRules rules = all_rules(strategy);
  const bool is_025 = std::any_of(rules.begin(), rules.end(), [](const LogicalAxisRule& rule) {
    return rule.name == "embed_attn" || rule.name == "embed_router";
  });
  return is_025 ? "maxtext-0.2.5" : "maxtext";
}

SpecAssignment assign_maxtext(const ParameterTree& tree, const Mesh& mesh,
                              const JsonReader& strategy) {
  const LogicalAxisRules rules = all_rules(strategy);
  const auto remove = strategy.find("remove_size_one_axes");
  const bool remove_size_one = remove && remove->boolean();
  const auto chosen = strategy.find("fit");
  const std::string fit =
      chosen ? chosen->choice({"keep", "per_axis", "whole_entry", "refuse"}) : "keep";

  return assign_by_logical_rules(
      tree, rules, [&](const PartitionSpec& names, const ParameterLeaf& leaf) {
        LogicalAssignment result = apply_logical_axis_rules(names, rules, leaf.place);
        if (remove_size_one) result.spec = remove_size_one_mesh_axes(result.spec, mesh);
        const PartitionSpec spec = fitted(result.spec, fit, leaf, mesh);
        const std::string why = fit_reason(result.spec, spec, leaf, mesh);
        if (!why.empty()) result.reason = why;
        result.spec = spec;
        return result;
      });
}

}  // namespace shardsim
