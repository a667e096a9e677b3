#include "strategies/specs/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

Bytes whole_bytes(const ParameterSharding& row) {
  std::int64_t elements = row.instances;
  for (const std::int64_t size : row.shape) elements *= size;
  return elements * size_of(row.dtype);
}

// Every instance a leaf.
ParameterTree tree_of(const SpecTable& table) {
  ParameterTree tree{table.subject, {}};
  for (const ParameterSharding& row : table.parameters) {
    ParameterLeaf leaf;
    leaf.name = row.name;
    leaf.shape = row.shape;
    leaf.dtype = row.dtype;
    leaf.logical_axes = row.logical_axes;
    tree.leaves.insert(tree.leaves.end(), static_cast<std::size_t>(row.instances), leaf);
  }
  return tree;
}

}  // namespace

Coverage coverage_of(const SpecTable& table) {
  Coverage coverage;
  for (std::size_t r = 0; r < table.rules.size(); ++r) {
    if (table.rules[r].matches == 0) {
      coverage.unused.push_back(r);
    } else if (table.rules[r].decides == 0) {
      coverage.shadowed.push_back(r);
    }
  }
  for (std::size_t i = 0; i < table.parameters.size(); ++i) {
    const ParameterSharding& row = table.parameters[i];
    if (!table.rules.empty() && !row.rule && !row.by_tactic) coverage.unmatched.push_back(i);
    const bool whole = Mesh::size_of(split_axes(row.stored)) == 1;
    if (whole && table.mesh.devices() > 1 && whole_bytes(row) >= large_parameter * row.instances) {
      coverage.large_replicated.push_back(i);
    }
    for (std::size_t d = 0; d < row.shape.size(); ++d) {
      const std::int64_t shards = Mesh::size_of(row.stored.dims[d].axes);
      if (row.shape[d] % (shards * row.stored.dims[d].blocks) != 0)
        coverage.indivisible.push_back({i, d, row.shape[d], shards});
    }
  }
  std::stable_sort(coverage.large_replicated.begin(), coverage.large_replicated.end(),
                   [&](std::size_t a, std::size_t b) {
                     return whole_bytes(table.parameters[a]) > whole_bytes(table.parameters[b]);
                   });
  return coverage;
}

std::vector<std::string> unused_rule_problems(const SpecTable& table, const Coverage& coverage,
                                              const SpecLimits& limits) {
  std::vector<std::string> problems;
  for (const std::size_t r : coverage.unused) {
    const RuleUse& rule = table.rules[r];
    const bool allowed =
        rule.built_in || std::any_of(limits.may_be_unused.begin(), limits.may_be_unused.end(),
                                     [&](const Pattern& p) { return p.search(rule.text); });
    if (!allowed) problems.push_back(fmt::format("rule {} \"{}\" matches nothing", r, rule.text));
  }
  return problems;
}

std::vector<std::string> whole_problems(const SpecTable& table, const Coverage& coverage,
                                        const SpecLimits& limits) {
  const bool splits = !table.rules.empty() ||
                      std::any_of(table.parameters.begin(), table.parameters.end(),
                                  [](const ParameterSharding& row) { return row.by_tactic; });
  if (!splits && !limits.max_whole) return {};
  if (coverage.large_replicated.empty()) return {};
  const Bytes most = limits.max_whole.value_or(default_max_whole);
  Bytes all{0};
  std::int64_t count = 0;
  for (const std::size_t i : coverage.large_replicated) {
    all += whole_bytes(table.parameters[i]);
    count += table.parameters[i].instances;
  }
  if (all <= most) return {};
  const ParameterSharding& largest = table.parameters[coverage.large_replicated.front()];
  const std::string which =
      count == 1 ? fmt::format("{} is", largest.name)
                 : fmt::format("{} parameters of {} or more, {} the largest, are",
                               format_count(count), format_bytes(large_parameter), largest.name);
  return {fmt::format("{} whole on every device: {} on each, more than {}", which,
                      format_bytes(all), format_bytes(most))};
}

SpecSummary summarize(const SpecTable& table) {
  std::vector<Sharding> shardings;
  for (const ParameterSharding& row : table.parameters) {
    shardings.insert(shardings.end(), static_cast<std::size_t>(row.instances), row.stored);
  }
  SpecSummary summary =
      summarize_specs(tree_of(table), shardings, table.mesh, table.data_axes, table.trains);
  // The state of the optimizer is sent nowhere.
  SpecTable parameters = table;
  if (std::erase_if(parameters.parameters, [](const auto& row) { return row.is_state; }) > 0) {
    const SpecSummary sent = summarize(parameters);
    summary.communication = sent.communication;
    summary.kept_split = sent.kept_split;
    summary.kept_split_leaves = sent.kept_split_leaves;
  }
  return summary;
}

SpecAnalysis analyze_specs(const SpecTable& table) {
  SpecAnalysis analysis;
  std::vector<PartitionSpec> specs;
  for (const ParameterSharding& row : table.parameters) {
    specs.insert(specs.end(), static_cast<std::size_t>(row.instances), row.returned);
    analysis.is_float = analysis.is_float || row.shape.empty();
  }
  try {
    analysis.counts = eformer_analysis(tree_of(table), specs, table.mesh);
  } catch (const RuleError& error) {
    analysis.error = error.what();
  }
  return analysis;
}

}  // namespace shardsim
