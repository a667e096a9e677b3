#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/propagation/function_rewriter.hpp"
#include "spmd/propagation/prepare_passes.hpp"
#include "spmd/tiling/tile_mesh.hpp"

namespace shardsim::spmd {

using stablehlo::Attribute;
using stablehlo::AxisSharding;
using stablehlo::Function;
using stablehlo::Module;
using stablehlo::Op;
using stablehlo::TileSharding;
using stablehlo::Value;
using stablehlo::ValueId;

namespace {

std::string target_of(const Op& op) {
  if (op.name != "stablehlo.custom_call") return "";
  const Attribute* target = find(op.attributes, "callee");
  if (target == nullptr) target = find(op.attributes, "call_target_name");
  return target == nullptr ? "" : target->text;
}

Place place_of(const Module& module, const Function& function, const Value& value) {
  if (value.defined_by != stablehlo::no_op) return module.place_of(function.op(value.defined_by));
  return {module.file, fmt::format("line {}: %{}", function.line, value.name)};
}

Attribute dialect_attribute(const AxisSharding& sharding) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::dialect;
  const std::string text = text_of(sharding);
  attribute.text = text.substr(1, text.size() - 2);  // without < and >
  return attribute;
}

// The dimensions in "unspecified_dims=[1,2]": the user leaves them to propagation.
std::vector<std::size_t> unspecified_dims(const Op& op) {
  std::vector<std::size_t> dims;
  const Attribute* config = find(op.attributes, "backend_config");
  const std::string text = config == nullptr ? "" : config->text;
  const std::size_t begin = text.find("unspecified_dims=[");
  if (begin == std::string::npos) return dims;
  stablehlo::Scanner scanner(std::string_view{text}.substr(begin + 18), "unspecified_dims",
                             op.line);
  while (!scanner.accept("]")) {
    if (!dims.empty()) scanner.expect(",");
    dims.push_back(static_cast<std::size_t>(scanner.integer("a dimension")));
  }
  return dims;
}

// A call between full and per-device shapes becomes a manual computation.
class ManualImporter : public FunctionRewriter {
 public:
  ManualImporter(const Module& module, const TileMesh& mesh) : module_(module), mesh_(mesh) {}

  Function import(const Function& function) {
    uses_ = uses_of(function);
    return run(function);
  }

 private:
  struct Inside {
    ValueId outer = 0;     // what enters, of the source
    AxisSharding lies_as;  // outside
  };

  bool rewrite(const Op& op) override {
    if (target_of(op) == "SPMDShardToFullShape") {
      const auto made = outer_results_.find(call_result(op));
      if (made == outer_results_.end()) {
        throw InputError(module_.place_of(op), "@SPMDShardToFullShape not of the result of a call");
      }
      replace(op.results.front(), made->second);
      return true;
    }
    if (op.name != "func.call" || op.operands.empty()) return false;
    return import_call(op);
  }

  // What leaves the per-device world, before it is marked as manual once more.
  [[nodiscard]] ValueId call_result(const Op& leaving) const {
    const ValueId value = leaving.operands.front();
    const Op* definition = source().definition(value);
    const bool marked = definition != nullptr && target_of(*definition) == "Sharding";
    return marked ? definition->operands.front() : value;
  }

  [[nodiscard]] const TileSharding* tiles_of(ValueId value) const {
    const auto& tiles = source().values[at(value)].sharding.tiles;
    return tiles ? &*tiles : nullptr;
  }

  [[nodiscard]] std::optional<Inside> entering(ValueId value) const {
    const Op* op = source().definition(value);
    if (op == nullptr || target_of(*op) != "SPMDFullToShardShape") return std::nullopt;
    const Op* marked = source().definition(op->operands.front());
    const bool is_marked = marked != nullptr && target_of(*marked) == "Sharding";
    const ValueId outer = is_marked ? marked->operands.front() : op->operands.front();
    const TileSharding* tiles = tiles_of(op->operands.front());
    if (tiles == nullptr) {
      throw InputError(module_.place_of(*op), "@SPMDFullToShardShape of a value without sharding");
    }
    return Inside{outer,
                  mesh_.axes_of(*tiles, source().type_of(outer).rank(), module_.place_of(*op))};
  }

  // The @SPMDShardToFullShape of a result of the call, or null.
  [[nodiscard]] const Op* leaving(ValueId result) const {
    for (const Use& use : uses_[at(result)]) {
      const Op& reader = source().op(use.op);
      if (target_of(reader) == "SPMDShardToFullShape") return &reader;
      if (target_of(reader) != "Sharding") continue;
      if (const Op* next = leaving(reader.results.front())) return next;
    }
    return nullptr;
  }

  bool import_call(const Op& op) {
    const Attribute* name = find(op.attributes, "callee");
    const Function* callee = module_.find_function(name == nullptr ? "" : name->text);
    std::vector<AxisSharding> in;
    std::vector<AxisSharding> out;
    std::vector<stablehlo::TensorType> types;
    Op manual;
    manual.name = "sdy.manual_computation";
    manual.line = op.line;
    for (const ValueId operand : op.operands) {
      std::optional<Inside> inside = entering(operand);
      if (!inside) return false;
      manual.operands.push_back(renamed(inside->outer));
      in.push_back(std::move(inside->lies_as));
    }
    if (callee == nullptr) return false;
    for (const ValueId result : op.results) {
      const Op* leave = leaving(result);
      const ValueId full = leave == nullptr ? result : leave->results.front();
      const TileSharding* tiles = leave == nullptr ? nullptr : tiles_of(full);
      types.push_back(source().type_of(full));
      out.push_back(mesh_.axes_of(tiles == nullptr ? TileSharding{} : *tiles, types.back().rank(),
                                  module_.place_of(op)));
    }
    set_attributes(manual, in, out, *tiles_of(op.operands.front()), module_.place_of(op));
    const std::vector<ValueId> made =
        create_around(std::move(manual), types, *callee, "sdy.return");
    for (std::size_t i = 0; i < made.size(); ++i) {
      target().values[at(made[i])].sharding = {};
      outer_results_[op.results[i]] = made[i];
      replace(op.results[i], made[i]);
    }
    return true;
  }

  void set_attributes(Op& manual, const std::vector<AxisSharding>& in,
                      const std::vector<AxisSharding>& out, const TileSharding& tiles,
                      const Place& place) const {
    const auto list = [](const std::vector<AxisSharding>& shardings) {
      Attribute attribute;
      attribute.kind = Attribute::Kind::list;
      for (const AxisSharding& sharding : shardings) {
        attribute.items.push_back(dialect_attribute(sharding));
      }
      return attribute;
    };
    manual.attributes.push_back({"in_shardings", list(in)});
    manual.attributes.push_back({"out_shardings", list(out)});
    Attribute axes;
    axes.kind = Attribute::Kind::dictionary;
    for (const std::string& axis : mesh_.manual_axes(tiles, place)) {
      axes.entries.push_back({axis, {}});
    }
    manual.attributes.push_back({"manual_axes", std::move(axes)});
  }

  const Module& module_;
  const TileMesh& mesh_;
  std::vector<std::vector<Use>> uses_;
  std::map<ValueId, ValueId> outer_results_;  // result of the call -> of the manual computation
};

// Tile shardings of values, arguments, results and constraints as axes.
class TileImporter {
 public:
  TileImporter(const Module& module, const TileMesh& mesh) : module_(module), mesh_(mesh) {}

  void import(Function& function) const {
    for (std::size_t i = 0; i < function.values.size(); ++i) {
      Value& value = function.values[i];
      if (!value.sharding.tiles) continue;
      const Place place = place_of(module_, function, value);
      const TileSharding tiles = *value.sharding.tiles;
      value.sharding = {};
      // Of a value that is per device nothing is left to say.
      if (tiles.kind == TileSharding::Kind::manual) continue;
      value.sharding.axes = mesh_.axes_of(tiles, value.type.rank(), place);
    }
    for (stablehlo::FunctionResult& result : function.results) {
      if (!result.sharding.tiles) continue;
      const Place place{module_.file, fmt::format("line {}: results", function.line)};
      const TileSharding tiles = *result.sharding.tiles;
      result.sharding = {mesh_.axes_of(tiles, result.type.rank(), place), std::nullopt};
    }
    for (Op& op : function.ops) {
      std::erase_if(op.attributes, [](const stablehlo::NamedAttribute& attribute) {
        return attribute.name == "mhlo.sharding";
      });
      if (target_of(op) == "Sharding") make_constraint(function, op);
    }
  }

 private:
  static void make_constraint(Function& function, Op& op) {
    Value& result = function.values[at(op.results.front())];
    if (!result.sharding.axes) return;
    for (const std::size_t dim : unspecified_dims(op)) {
      if (dim < result.sharding.axes->dimensions.size()) {
        result.sharding.axes->dimensions[dim].open = true;
      }
    }
    op.name = "sdy.sharding_constraint";
    op.attributes.clear();
    op.attributes.push_back({"value", dialect_attribute(*result.sharding.axes)});
  }

  const Module& module_;
  const TileMesh& mesh_;
};

}  // namespace

void import_tiles(Module& program) {
  TileMesh mesh;
  bool any = false;
  for (const Function& function : program.functions) {
    for (const Value& value : function.values) {
      if (!value.sharding.tiles) continue;
      any = true;
      mesh.add(*value.sharding.tiles, place_of(program, function, value));
    }
    for (const stablehlo::FunctionResult& result : function.results) {
      if (!result.sharding.tiles) continue;
      any = true;
      mesh.add(*result.sharding.tiles,
               {program.file, fmt::format("line {}: results", function.line)});
    }
  }
  if (!any) return;
  stablehlo::ProgramMesh found{"mesh", {}, {}};
  if (!mesh.empty()) found = mesh.mesh({program.file, ""});
  program.meshes = {std::move(found)};
  // The callees of manual computations are read while the functions before them change.
  std::vector<Function> functions;
  for (const Function& function : program.functions) {
    functions.push_back(ManualImporter(program, mesh).import(function));
    TileImporter(program, mesh).import(functions.back());
  }
  program.functions = std::move(functions);
}

}  // namespace shardsim::spmd
