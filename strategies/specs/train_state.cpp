#include "strategies/specs/train_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "strategies/layout/assign.hpp"

namespace shardsim {
namespace {

ParameterLeaf integers(std::string name, std::vector<std::int64_t> shape, const Place& place) {
  ParameterLeaf leaf;
  leaf.name = std::move(name);
  leaf.shape = std::move(shape);
  leaf.dtype = DType::i32;
  leaf.place = place;
  return leaf;
}

// The state beside the parameters; `moment_of` is the parameter of each, or none.
struct State {
  std::vector<ParameterLeaf> leaves;
  std::vector<std::optional<std::size_t>> moment_of;
};

State state_of(const ParameterTree& tree, const Strategy& strategy, const StateOptimizer& optimizer,
               const StateTypes& types) {
  const RuleSystem* system = find_rule_system(strategy.name);
  const std::string prefix(system != nullptr ? system->state_prefix : RuleSystem{}.state_prefix);
  State state;
  const auto add = [&](ParameterLeaf leaf, std::optional<std::size_t> parameter) {
    state.leaves.push_back(std::move(leaf));
    state.moment_of.push_back(parameter);
  };
  const auto add_copies = [&](const std::string& path, std::optional<DType> dtype) {
    for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
      if (!tree.leaves[i].has_shape) continue;
      constexpr std::string_view params = "params/";
      ParameterLeaf leaf = tree.leaves[i];
      if (leaf.name.starts_with(params)) leaf.name.erase(0, params.size());
      leaf.name = fmt::format("{}/{}", path, leaf.name);
      if (dtype) leaf.dtype = *dtype;
      add(std::move(leaf), i);
    }
  };
  if (types.master) add_copies("master", types.master);
  for (const StateSlot& slot : optimizer) {
    if (slot.is_moment) {
      add_copies(prefix + slot.path, slot.dtype ? slot.dtype : types.moments);
    } else {
      add(integers(prefix + slot.path, {}, strategy.place), {});
    }
  }
  if (system == nullptr || system->counts_steps) add(integers("step", {}, strategy.place), {});
  return state;
}

// A moment beside its parameter.
ParameterSharding moment_row(const ParameterLeaf& leaf, const ParameterSharding& parameter,
                             const Strategy& strategy, const Mesh& mesh) {
  Sharding stored = parameter.stored;
  std::string by = "as its parameter";
  if (strategy.zero_stage >= 1) {
    AxisList axes;
    for (const std::string& axis : strategy.batch_axes)
      axes.push_back(mesh.whole(*mesh.find(axis)));
    if (const auto d = add_shards(stored, leaf.shape, axes, strategy.shard_dimension)) {
      by += fmt::format(", dimension {} over {}", *d, fmt::join(strategy.batch_axes, ", "));
    }
  }
  ParameterSharding row =
      describe(leaf.name, leaf.shape, 1, leaf.dtype, without_unit_axes(stored), mesh);
  if (stored == parameter.stored) {
    row.returned = parameter.returned;
  }
  row.assigned_by = by;
  row.reason = parameter.reason;
  return row;
}

}  // namespace

SpecTable train_state_specs(const ParameterTree& tree, const Mesh& mesh, const Strategy& strategy,
                            const StateOptimizer& optimizer, const StateTypes& types) {
  const State state = state_of(tree, strategy, optimizer, types);
  const RuleSystem* system = find_rule_system(strategy.name);
  SpecTable table;
  if (system != nullptr && system->sees_state) {
    ParameterTree whole = tree;
    whole.leaves.insert(whole.leaves.end(), state.leaves.begin(), state.leaves.end());
    table = tree_specs(whole, mesh, strategy);
  } else {
    table = tree_specs(tree, mesh, strategy);
    for (std::size_t i = 0; i < state.leaves.size(); ++i) {
      const ParameterLeaf& leaf = state.leaves[i];
      if (const auto parameter = state.moment_of[i]) {
        table.parameters.push_back(moment_row(leaf, table.parameters[*parameter], strategy, mesh));
      } else {
        table.parameters.push_back(
            describe(leaf.name, leaf.shape, 1, leaf.dtype, replicated(leaf.shape.size()), mesh));
        table.parameters.back().assigned_by = "whole";
      }
      table.parameters.back().by_tactic = true;
    }
  }
  table.parameters.push_back(describe("rng", {2}, 1, DType::i32, replicated(1), mesh));
  ParameterSharding& key = table.parameters.back();
  if (strategy.name != "praxis") key.returned = {};  // praxis: to_partition_spec((None,), ...)
  key.assigned_by = "whole";
  key.by_tactic = true;
  for (std::size_t i = tree.leaves.size(); i < table.parameters.size(); ++i) {
    table.parameters[i].is_state = true;
  }
  return table;
}

}  // namespace shardsim
