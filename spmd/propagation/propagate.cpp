#include "spmd/propagation/propagate.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"
#include "spmd/manual.hpp"
#include "spmd/propagation/import_passes.hpp"
#include "spmd/propagation/op_kinds.hpp"
#include "spmd/propagation/propagation_engine.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::Op;
using stablehlo::ValueId;

namespace {

// The longest prefix of axes, the last perhaps in part, that divides the dimension.
Axes dividing(const Axes& axes, std::int64_t size) {
  Axes result;
  for (const Axis& axis : axes) {
    const std::int64_t part = std::gcd(size, axis.size);
    if (part > 1) result.push_back({axis.index, axis.pre_size, part});
    if (part != axis.size) break;
    size /= part;
  }
  return result;
}

// Where arrays enter and leave the program every device holds as much as any other, and parts of
// axes stand only where the user put them.
void settle_at_boundary(const Meshes& meshes, std::optional<TensorSharding>& sharding,
                        const std::vector<std::int64_t>& dims) {
  if (!sharding) return;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    DimensionAxes& dimension = sharding->dimensions[d];
    dimension.axes = dividing(dimension.axes, dims[d]);
    if (!dimension.open) continue;
    const auto part =
        std::find_if(dimension.axes.begin(), dimension.axes.end(),
                     [&](const Axis& axis) { return !meshes.is_whole(axis, sharding->mesh); });
    dimension.axes.erase(part, dimension.axes.end());
  }
}

class Writer {
 public:
  Writer(stablehlo::Module& module, Function& function, const PropagationGraph& graph,
         const Meshes& meshes)
      : module_(module), function_(function), graph_(graph), meshes_(meshes) {}

  void write() {
    for (std::size_t i = 0; i < function_.values.size(); ++i) {
      const SlotId slot = graph_.slot_of[i];
      function_.values[i].sharding = {};
      if (slot != no_slot) function_.values[i].sharding.axes = text_of_slot(slot, type(i).rank());
    }
    for (std::size_t i = 0; i < graph_.result_slots.size(); ++i) {
      if (graph_.result_slots[i] == no_slot) continue;
      function_.results[i].sharding = {
          text_of_slot(graph_.result_slots[i], function_.results[i].type.rank()), std::nullopt};
    }
    for (Op& op : function_.ops) {
      std::erase_if(op.attributes, [](const stablehlo::NamedAttribute& attribute) {
        return attribute.name == "sdy.sharding" || attribute.name == "mhlo.sharding";
      });
      if (is_manual(op)) write_manual(op);
      if (is_constraint(op)) write_constraint(op);
    }
  }

 private:
  [[nodiscard]] const stablehlo::TensorType& type(std::size_t value) const {
    return function_.values[value].type;
  }

  [[nodiscard]] stablehlo::AxisSharding text_of_slot(SlotId slot, std::size_t rank) const {
    const std::optional<TensorSharding>& found = graph_.slots[at(slot)].sharding;
    return meshes_.text_form(found ? *found : open_sharding(0, rank));
  }

  // Arguments are stored as they lie inside; outside, their manual axes come before.
  void write_manual(Op& op) const {
    ManualComputation manual = manual_computation(op, module_.place_of(op));
    const stablehlo::Region& body = function_.regions[at(op.regions.front())];
    for (std::size_t i = 0; i < manual.in.size(); ++i) {
      const Place place = module_.place_of(op);
      const TensorSharding outside =
          meshes_.resolve(manual.in[i], manual.in[i].dimensions.size(), place);
      const SlotId slot = graph_.slot_of[at(body.arguments[i])];
      const TensorSharding& inner = *graph_.slots[at(slot)].sharding;
      manual.in[i] = meshes_.text_form(with_manual_axes(
          inner, outside, meshes_.resolve_names(manual.axes, outside.mesh, place)));
    }
    for (std::size_t i = 0; i < manual.out.size(); ++i) {
      manual.out[i] = *function_.values[at(op.results[i])].sharding.axes;
    }
    set_manual_shardings(op, manual.in, manual.out);
  }

  void write_constraint(Op& op) const {
    for (stablehlo::NamedAttribute& attribute : op.attributes) {
      if (attribute.name != "value" && attribute.name != "sharding") continue;
      const std::string text = text_of(*function_.values[at(op.results.front())].sharding.axes);
      attribute.value.text = text.substr(1, text.size() - 2);  // without < and >
    }
  }

  stablehlo::Module& module_;
  Function& function_;
  const PropagationGraph& graph_;
  const Meshes& meshes_;
};

}  // namespace

void propagate(stablehlo::Module& program) {
  if (program.meshes.empty()) program.meshes.push_back({"mesh", {}, {}});
  for (Function& function : program.functions) {
    const Meshes meshes(program);
    split_constants(function);
    apply_constraints(program, function);
    PropagationGraph graph = build_graph(program, function, meshes);
    run_propagation(graph, meshes);
    for (const ValueId argument : function.body().arguments) {
      const SlotId slot = graph.slot_of[at(argument)];
      if (slot == no_slot) continue;
      settle_at_boundary(meshes, graph.slots[at(slot)].sharding, function.type_of(argument).dims);
    }
    for (std::size_t i = 0; i < graph.result_slots.size(); ++i) {
      const SlotId slot = graph.result_slots[i];
      if (slot == no_slot) continue;
      settle_at_boundary(meshes, graph.slots[at(slot)].sharding, function.results[i].type.dims);
    }
    Writer(program, function, graph, meshes).write();
    merge_constants(function);
  }
}

}  // namespace shardsim::spmd
