#include "strategies/specs/spec_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/fold_names.hpp"
#include "strategies/layout/assign.hpp"
#include "strategies/rules/pattern_rules.hpp"

namespace shardsim {
namespace {

std::string rule_text(std::size_t rule, const std::string& text) {
  return fmt::format("rule {}: {}", rule, text);
}

void assign_by_system(const ParameterTree& tree, const Strategy& strategy, SpecTable& table) {
  const SpecAssignment specs =
      find_rule_system(strategy.name)
          ->assign(tree, table.mesh, JsonReader(*strategy.system, strategy.place));
  table.rules = specs.rules;
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    const ParameterLeaf& leaf = tree.leaves[i];
    const LeafSpec& given = specs.leaves[i];
    const Sharding stored =
        without_unit_axes(to_sharding(given.spec, leaf.shape.size(), table.mesh, strategy.place));
    ParameterSharding row = describe(leaf.name, leaf.shape, 1, leaf.dtype, stored, table.mesh);
    row.logical_axes = leaf.logical_axes;
    row.returned = given.spec;
    row.rule = given.rule;
    row.dimension_rules = given.dimension_rules;
    row.by_tactic = !given.tactic.empty();
    row.reason = given.reason;
    row.assigned_by = decided_by(given, specs.rules);
    table.parameters.push_back(std::move(row));
  }
  table.warnings = system_warnings(strategy.name, specs.warnings);
}

void assign_by_recipe(const ParameterTree& tree, const Strategy& strategy, SpecTable& table) {
  if (strategy.splits_model) {
    throw InputError(strategy.place,
                     fmt::format("strategy \"{}\" splits by what a dimension means, which a "
                                 "parameter tree does not say; rules can",
                                 strategy.name));
  }
  PatternRules rules(strategy.rules, table.mesh);
  AxisList axes;
  if (strategy.shards_parameters) axes = shard_axes(strategy, table.mesh);
  for (const ParameterLeaf& leaf : tree.leaves) {
    Sharding stored = replicated(leaf.shape.size());
    std::string by = strategy.name + ": replicated";
    const auto rule = rules.find(leaf.name);
    if (rule) {
      stored = rules.sharding(*rule, leaf.name, leaf.shape.size());
      by = rule_text(*rule, strategy.rules[*rule].pattern);
    } else if (const auto d = add_shards(stored, leaf.shape, axes, strategy.shard_dimension)) {
      by = fmt::format("{}: dimension {} over {}", strategy.name, *d, strategy.shard_axis);
    }
    ParameterSharding row = describe(leaf.name, leaf.shape, 1, leaf.dtype, stored, table.mesh);
    row.rule = rule;
    row.assigned_by = by;
    table.parameters.push_back(std::move(row));
  }
  rules.require_matches("parameter");
  table.rules = rules.uses();
}

// What rows must agree in to be printed as one.
std::string likeness(const ParameterSharding& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}", fmt::join(row.shape, ","), name_of(row.dtype),
                     to_string(row.spec), to_string(row.returned), row.assigned_by, row.reason);
}

}  // namespace

ParameterSharding describe(std::string name, std::vector<std::int64_t> shape,
                           std::int64_t instances, DType dtype, const Sharding& stored,
                           const Mesh& mesh) {
  ParameterSharding row;
  row.name = std::move(name);
  row.shape = std::move(shape);
  row.instances = instances;
  row.dtype = dtype;
  row.stored = stored;
  row.spec = row.returned = spec_of(stored, mesh);
  double used = 1;
  for (std::size_t d = 0; d < row.shape.size(); ++d) {
    row.shard_shape.push_back(shard_size(row.shape[d], stored.dims[d]));
    const std::int64_t padded = row.shard_shape[d] * Mesh::size_of(stored.dims[d].axes);
    if (padded > 0) used *= static_cast<double>(row.shape[d]) / static_cast<double>(padded);
  }
  row.bytes_per_device = shard_elements(row.shape, stored) * size_of(dtype);
  row.padding_per_device =
      Bytes(std::llround(static_cast<double>(row.bytes_per_device.count()) * (1 - used)));
  return row;
}

AxisList data_axes(const Strategy& strategy, const Mesh& mesh) {
  AxisList axes;
  for (const auto* names : {&strategy.batch_axes, &strategy.sequence_axes}) {
    for (const std::string& name : *names) axes.push_back(mesh.whole(*mesh.find(name)));
  }
  return axes;
}

SpecTable tree_specs(const ParameterTree& tree, const Mesh& mesh, const Strategy& strategy) {
  SpecTable table;
  table.subject = tree.model;
  table.mesh = mesh;
  table.data_axes = data_axes(strategy, mesh);
  if (strategy.is_rule_system()) {
    assign_by_system(tree, strategy, table);
  } else {
    assign_by_recipe(tree, strategy, table);
  }
  for (std::string& warning : rule_warnings(table.rules, "parameter")) {
    table.warnings.push_back(std::move(warning));
  }
  return table;
}

std::vector<ParameterSharding> fold_layers(const std::vector<ParameterSharding>& kinds,
                                           std::vector<RowOfKind> rows) {
  std::vector<std::string> likenesses;
  for (const ParameterSharding& kind : kinds) likenesses.push_back(likeness(kind));
  std::vector<std::string> names;
  std::vector<std::string> alike;
  for (RowOfKind& row : rows) {
    names.push_back(std::move(row.name));
    alike.push_back(likenesses[row.kind]);
  }
  std::vector<ParameterSharding> folded;
  for (const FoldedName& fold : fold_names(names, alike)) {
    folded.push_back(kinds[rows[fold.members.front()].kind]);
    folded.back().name = fold.name;
    folded.back().instances = 0;
    for (const std::size_t i : fold.members) {
      folded.back().instances += kinds[rows[i].kind].instances;
    }
  }
  return folded;
}

std::vector<ParameterSharding> fold_layers(const std::vector<ParameterSharding>& rows) {
  std::vector<RowOfKind> named;
  for (std::size_t i = 0; i < rows.size(); ++i) named.push_back({rows[i].name, i});
  return fold_layers(rows, std::move(named));
}

}  // namespace shardsim
