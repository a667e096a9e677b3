#include "strategies/spec_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "strategies/assign.hpp"
#include "strategies/rules/pattern_rules.hpp"

namespace shardsim {
namespace {

std::string rule_text(std::size_t rule, const std::string& text) {
  return fmt::format("rule {}: {}", rule, text);
}

void assign_by_system(const ParameterTree& tree, const StrategyOptions& strategy,
                      SpecTable& table) {
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

void assign_by_recipe(const ParameterTree& tree, const StrategyOptions& strategy,
                      SpecTable& table) {
  if (strategy.splits_model()) {
    throw InputError(strategy.place,
                     fmt::format("strategy \"{}\" splits by what a dimension means, which a "
                                 "parameter tree does not say; rules can",
                                 strategy.name));
  }
  PatternRules rules(strategy.rules, table.mesh);
  AxisList axes;
  if (strategy.shards_parameters())
    axes = {table.mesh.whole(*table.mesh.find(strategy.shard_axis))};
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

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "layers/12/w" -> "layers/{}/w" and {"12"}.
struct NameShape {
  std::string text;
  std::vector<std::string> numbers;
};

NameShape shape_of(const std::string& name) {
  NameShape shape;
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      shape.text += name[i++];
      continue;
    }
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    shape.numbers.push_back(name.substr(i, end - i));
    shape.text += '\0';
    i = end;
  }
  return shape;
}

// Rows under one row: their numbers, place by place.
struct Fold {
  std::size_t row = 0;
  std::string text;
  std::vector<std::string> numbers;
  std::vector<bool> differs;
};

std::string name_of(const Fold& fold) {
  std::string name;
  std::size_t place = 0;
  for (const char c : fold.text) {
    if (c != '\0') {
      name += c;
    } else {
      name += fold.differs[place] ? "{}" : fold.numbers[place];
      ++place;
    }
  }
  return name;
}

// What rows must agree in to be printed as one.
std::string likeness(const ParameterSharding& row, const std::string& name) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", name, fmt::join(row.shape, ","), name_of(row.dtype),
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

AxisList data_axes(const StrategyOptions& strategy, const Mesh& mesh) {
  AxisList axes;
  for (const auto* names : {&strategy.batch_axes, &strategy.sequence_axes}) {
    for (const std::string& name : *names) axes.push_back(mesh.whole(*mesh.find(name)));
  }
  return axes;
}

SpecTable tree_specs(const ParameterTree& tree, const Mesh& mesh, const StrategyOptions& strategy) {
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

std::vector<ParameterSharding> fold_layers(const std::vector<ParameterSharding>& rows) {
  std::vector<Fold> folds;
  std::vector<std::int64_t> instances;
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    NameShape shape = shape_of(rows[i].name);
    const auto [found, added] = known.try_emplace(likeness(rows[i], shape.text), folds.size());
    if (added) {
      const std::size_t places = shape.numbers.size();
      folds.push_back(
          {i, std::move(shape.text), std::move(shape.numbers), std::vector<bool>(places, false)});
      instances.push_back(rows[i].instances);
      continue;
    }
    Fold& fold = folds[found->second];
    for (std::size_t n = 0; n < fold.numbers.size(); ++n) {
      if (fold.numbers[n] != shape.numbers[n]) fold.differs[n] = true;
    }
    instances[found->second] += rows[i].instances;
  }
  std::vector<ParameterSharding> folded;
  for (std::size_t f = 0; f < folds.size(); ++f) {
    folded.push_back(rows[folds[f].row]);
    folded.back().name = name_of(folds[f]);
    folded.back().instances = instances[f];
  }
  return folded;
}

}  // namespace shardsim
