#include "spmd/propagation/propagation_graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"
#include "spmd/manual.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/propagation/op_kinds.hpp"
#include "spmd/propagation/propagation_directions.hpp"
#include "spmd/propagation/sharding_groups.hpp"
#include "stablehlo/op_rules.hpp"

namespace shardsim::spmd {

using stablehlo::FactorKind;
using stablehlo::FactorRule;
using stablehlo::Function;
using stablehlo::no_op;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::RegionId;
using stablehlo::ValueId;

namespace {

FactorRule identity_rule(const stablehlo::TensorType& type, std::size_t operands) {
  FactorRule rule;
  stablehlo::TensorFactors factors;
  for (const std::int64_t size : type.dims) {
    factors.push_back({static_cast<int>(rule.factors.size())});
    rule.factors.push_back({size, FactorKind::pass_through, false});
  }
  rule.operands.assign(operands, factors);
  rule.results = {factors};
  return rule;
}

class GraphBuilder {
 public:
  GraphBuilder(const stablehlo::Module& module, const Function& function, const Meshes& meshes)
      : module_(module), function_(function), meshes_(meshes), uses_(uses_of(function)) {}

  PropagationGraph build() {
    graph_.slot_of.assign(function_.values.size(), no_slot);
    edge_of_.assign(function_.values.size(), -1);
    step_of_.assign(function_.ops.size(), -1);
    for (const ValueId argument : function_.body().arguments) give_slot(argument);
    visit_region(0);
    add_function_results();
    for (const ValueId argument : function_.body().arguments) add_wakes(argument);
    for (const OpId op : ops_in_order(function_)) {
      for (const ValueId result : function_.op(op).results) add_wakes(result);
      for (const RegionId region : function_.op(op).regions) {
        if (!is_manual(function_.op(op))) continue;
        for (const ValueId argument : function_.regions[at(region)].arguments) {
          add_wakes(argument);
        }
      }
    }
    share_in_groups(module_, function_, graph_);
    return std::move(graph_);
  }

 private:
  SlotId new_slot() {
    graph_.slots.emplace_back();
    return static_cast<SlotId>(graph_.slots.size()) - 1;
  }
  Slot& slot_of(ValueId value) { return graph_.slots[at(graph_.slot_of[at(value)])]; }

  // Of one tensor value, with the sharding that the program gives it.
  void give_slot(ValueId id) {
    const stablehlo::Value& value = function_.values[at(id)];
    if (!value.type.is_tensor) return;
    graph_.slot_of[at(id)] = new_slot();
    if (value.sharding.axes) {
      set(slot_of(id), *value.sharding.axes, value.type.rank(), place_of_value(value));
    }
  }

  void set(Slot& slot, const stablehlo::AxisSharding& given, std::size_t rank, const Place& place) {
    slot.sharding = meshes_.resolve(given, rank, place);
    const auto has_priority = [](const stablehlo::DimensionSharding& dimension) {
      return dimension.priority.value_or(0) != 0;
    };
    if (std::none_of(given.dimensions.begin(), given.dimensions.end(), has_priority)) return;
    for (const stablehlo::DimensionSharding& dimension : given.dimensions) {
      slot.priorities.push_back(dimension.priority.value_or(0));
    }
  }

  [[nodiscard]] Place place_of_value(const stablehlo::Value& value) const {
    if (value.defined_by != no_op) return module_.place_of(function_.op(value.defined_by));
    return {module_.file, fmt::format("line {}: %{}", function_.line, value.name)};
  }

  void visit_region(RegionId region) {
    for (const OpId id : function_.regions[at(region)].ops) visit(id);
  }

  void visit(OpId id) {
    const Op& op = function_.op(id);
    for (const ValueId result : op.results) give_slot(result);
    if (is_manual(op)) return visit_manual(op);
    add_step(id, op);
    for (const RegionId region : op.regions) {
      const std::vector<ValueId>& arguments = function_.regions[at(region)].arguments;
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (is_loop(op) && i < op.results.size()) {
          graph_.slot_of[at(arguments[i])] = graph_.slot_of[at(op.results[i])];
        } else {
          give_slot(arguments[i]);
        }
      }
      visit_region(region);
    }
    if (is_data_flow(op)) add_edges(op);
  }

  void add_step(OpId id, const Op& op) {
    Step step;
    if (op.name == "sdy.propagation_barrier") {
      step.rule = identity_rule(function_.type_of(op.results.front()), 1);
      step.directions = same_in_all_passes(step.rule, allowed_direction(op));
    } else {
      std::optional<FactorRule> rule = factor_rule(module_, function_, op).rule;
      if (!rule || rule->factors.empty()) return;
      step.rule = std::move(*rule);
      step.directions = directions_of_op(step.rule, function_, op, reads_what_only_it_reads(op));
    }
    step.elementwise = is_elementwise(function_, op);
    for (const ValueId operand : op.operands) {
      step.operands.push_back(graph_.slot_of[at(operand)]);
    }
    for (const ValueId result : op.results) {
      step.results.push_back(graph_.slot_of[at(result)]);
    }
    step_of_[at(id)] = static_cast<StepId>(graph_.steps.size());
    graph_.steps.push_back(std::move(step));
  }

  [[nodiscard]] bool reads_what_only_it_reads(const Op& op) const {
    return std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
      return is_scalar(function_.type_of(operand)) || uses_[at(operand)].size() == 1;
    });
  }

  // What flows into result i of a data flow op.
  [[nodiscard]] std::vector<ValueId> sources_of(const Op& op, std::size_t result) const {
    std::vector<ValueId> sources;
    if (!is_branch(op)) sources.push_back(op.operands[result]);
    for (const RegionId region : op.regions) {
      if (is_loop(op) && region == op.regions.front()) continue;  // the condition
      const Op& end = function_.op(function_.regions[at(region)].ops.back());
      if (result < end.operands.size()) sources.push_back(end.operands[result]);
    }
    return sources;
  }

  void add_edges(const Op& op) {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (!is_barrier(op) || i < op.operands.size()) {
        add_edge(sources_of(op, i), op.results[i], {}, {}, false);
      }
    }
  }

  void add_edge(const std::vector<ValueId>& sources, ValueId target,
                std::optional<TensorSharding> outside, const std::vector<int>& manual_axes,
                bool is_argument_edge) {
    if (graph_.slot_of[at(target)] == no_slot) return;
    Step step;
    step.rule = identity_rule(function_.type_of(target), sources.size());
    step.directions = same_in_all_passes(step.rule, Direction::both);
    for (const ValueId source : sources) {
      step.operands.push_back(graph_.slot_of[at(source)]);
    }
    step.results = {graph_.slot_of[at(target)]};
    step.manual_outside = std::move(outside);
    step.manual_axes = manual_axes;
    step.is_argument_edge = is_argument_edge;
    edge_of_[at(target)] = static_cast<StepId>(graph_.steps.size());
    graph_.steps.push_back(std::move(step));
  }

  void visit_manual(const Op& op) {
    const Place place = module_.place_of(op);
    const ManualComputation manual = manual_computation(op, place);
    const stablehlo::Region& body = function_.regions[at(op.regions.front())];
    if (body.arguments.size() != op.operands.size()) {
      throw InputError(place, fmt::format("{} operands, but {} arguments in the body",
                                          op.operands.size(), body.arguments.size()));
    }
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const std::size_t rank = function_.type_of(op.operands[i]).rank();
      const TensorSharding outside = meshes_.resolve(manual.in[i], rank, place);
      const std::vector<int> axes = meshes_.resolve_names(manual.axes, outside.mesh, place);
      give_slot(body.arguments[i]);
      slot_of(body.arguments[i]).sharding = without_manual_axes(outside, axes);
      add_edge({op.operands[i]}, body.arguments[i], outside, axes, /*is_argument_edge=*/true);
    }
    visit_region(op.regions.front());
    const std::vector<ValueId>& returned = function_.op(body.ops.back()).operands;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const std::size_t rank = function_.type_of(op.results[i]).rank();
      const TensorSharding outside = meshes_.resolve(manual.out[i], rank, place);
      const std::vector<int> axes = meshes_.resolve_names(manual.axes, outside.mesh, place);
      slot_of(op.results[i]).sharding = outside;
      add_edge({returned[i]}, op.results[i], outside, axes, /*is_argument_edge=*/false);
    }
  }

  void add_function_results() {
    const Op& end = function_.op(function_.body().ops.back());
    for (std::size_t i = 0; i < end.operands.size(); ++i) {
      const stablehlo::TensorType& type = function_.type_of(end.operands[i]);
      graph_.result_slots.push_back(type.is_tensor ? new_slot() : no_slot);
      if (!type.is_tensor) continue;
      const SlotId slot = graph_.result_slots.back();
      if (const auto& given = function_.results[i].sharding.axes) {
        const Place place{module_.file, fmt::format("line {}: result {}", function_.line, i)};
        set(graph_.slots[at(slot)], *given, type.rank(), place);
      }
      Step step;
      step.rule = identity_rule(type, 1);
      step.directions = same_in_all_passes(step.rule, Direction::both);
      step.operands = {graph_.slot_of[at(end.operands[i])]};
      step.results = {slot};
      graph_.function_results.push_back(std::move(step));
    }
  }

  // The step that looks at this operand: the edge that it flows into, or the op's own.
  [[nodiscard]] StepId step_of_use(const Use& use) const {
    const Op* op = &function_.op(use.op);
    const auto edge_to_result = [&](const Op& owner) {
      return use.operand < owner.results.size() ? edge_of_[at(owner.results[use.operand])] : -1;
    };
    if (is_loop(*op) || is_barrier(*op)) return edge_to_result(*op);
    if (is_manual(*op)) {
      return edge_of_[at(function_.regions[at(op->regions.front())].arguments[use.operand])];
    }
    if (!is_terminator(*op)) return step_of_[at(use.op)];
    const OpId owner = function_.regions[at(op->parent)].owner;
    if (owner == no_op) return -1;
    const Op& outer = function_.op(owner);
    const bool is_condition = is_loop(outer) && op->parent == outer.regions.front();
    const bool flows = is_loop(outer) || is_branch(outer) || is_manual(outer);
    return flows && !is_condition ? edge_to_result(outer) : -1;
  }

  void wake(Slot& slot, StepId step) {
    if (step >= 0) slot.wakes.push_back(step);
  }

  void add_wakes(ValueId id) {
    if (graph_.slot_of[at(id)] == no_slot) return;
    Slot& slot = slot_of(id);
    const StepId edge = edge_of_[at(id)];
    const OpId definition = function_.values[at(id)].defined_by;
    if (edge >= 0 && definition != no_op && is_loop(function_.op(definition))) {
      const auto result = at(function_.values[at(id)].result);
      for (const RegionId region : function_.op(definition).regions) {
        const std::vector<ValueId>& arguments = function_.regions[at(region)].arguments;
        if (result < arguments.size()) wake_readers(slot, arguments[result], true);
      }
    }
    if (edge >= 0) {
      wake(slot, edge);
    } else if (definition != no_op) {
      wake(slot, step_of_[at(definition)]);
    }
    wake_readers(slot, id, edge < 0);
  }

  void wake_readers(Slot& slot, ValueId value, bool last_first) {
    const std::vector<Use>& uses = uses_[at(value)];
    if (last_first) {
      for (auto use = uses.rbegin(); use != uses.rend(); ++use) wake(slot, step_of_use(*use));
    } else {
      for (const Use& use : uses) wake(slot, step_of_use(use));
    }
  }

  const stablehlo::Module& module_;
  const Function& function_;
  const Meshes& meshes_;
  std::vector<std::vector<Use>> uses_;
  PropagationGraph graph_;
  std::vector<StepId> edge_of_;  // by value: the edge that ends there
  std::vector<StepId> step_of_;  // by op
};

}  // namespace

PropagationGraph build_graph(const stablehlo::Module& module, const Function& function,
                             const Meshes& meshes) {
  return GraphBuilder(module, function, meshes).build();
}

}  // namespace shardsim::spmd
