// What loops and branches read from outside: constants, and values with shardings.
#include <algorithm>
#include <map>
#include <set>

#include "base/index.hpp"
#include "spmd/manual.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/propagation/function_rewriter.hpp"
#include "spmd/propagation/op_kinds.hpp"
#include "spmd/propagation/prepare_passes.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::no_op;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::RegionId;
using stablehlo::ValueId;

namespace {

bool drops(const std::vector<char>& keep) {
  return std::find(keep.begin(), keep.end(), 0) != keep.end();
}

// What no round of a loop changes is read from outside.
class LoopNarrower : public FunctionRewriter {
 public:
  [[nodiscard]] static bool applies_to(const Function& function) {
    return std::any_of(function.ops.begin(), function.ops.end(),
                       [&](const Op& op) { return is_loop(op) && drops(changing(function, op)); });
  }

 private:
  // By operand: 0 for what every round passes on as it is.
  static std::vector<char> changing(const Function& function, const Op& loop) {
    const stablehlo::Region& body = function.regions[at(loop.regions.back())];
    const std::vector<ValueId>& returned = function.op(body.ops.back()).operands;
    std::vector<char> keep(loop.operands.size(), 1);
    for (std::size_t i = 0; i < keep.size(); ++i) {
      keep[i] = returned[i] != body.arguments[i] && returned[i] != loop.operands[i] ? 1 : 0;
    }
    return keep;
  }

  bool rewrite(const Op& op) override {
    if (!is_loop(op)) return false;
    const std::vector<char> keep = changing(source(), op);
    if (!drops(keep)) return false;
    copy_loop(op, keep);
    return true;
  }
};

// What a manual computation does not read is no operand of it.
class ManualNarrower : public FunctionRewriter {
 public:
  explicit ManualNarrower(const Function& function) : uses_(uses_of(function)) {}

 private:
  bool rewrite(const Op& op) override {
    if (!is_manual(op)) return false;
    const stablehlo::Region& body = source().regions[at(op.regions.front())];
    std::vector<char> keep;
    for (const ValueId argument : body.arguments) {
      keep.push_back(uses_[at(argument)].empty() ? 0 : 1);
    }
    if (!drops(keep)) return false;
    Op& made = target().ops[at(copy_without_inputs(op, keep))];
    for (stablehlo::NamedAttribute& attribute : made.attributes) {
      if (attribute.name != "in_shardings") continue;
      std::vector<stablehlo::Attribute> items;
      for (std::size_t i = 0; i < attribute.value.items.size(); ++i) {
        if (keep[i] != 0) items.push_back(std::move(attribute.value.items[i]));
      }
      attribute.value.items = std::move(items);
    }
    return true;
  }

  std::vector<std::vector<Use>> uses_;
};

class ConstantSinker : public FunctionRewriter {
 private:
  bool rewrite(const Op& op) override {
    if (target_region() == 0) return false;
    const OpId made = copy(op);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const ValueId value = target().op(made).operands[i];
      const Op* definition = target_definition(value);
      if (definition == nullptr || !is_constant(*definition) ||
          definition->parent == target_region()) {
        continue;
      }
      const ValueId local = local_copy(value, *definition);
      target().ops[at(made)].operands[i] = local;
    }
    return true;
  }

  // Made where it is first read: before the reader, which has just been placed.
  ValueId local_copy(ValueId value, Op constant) {
    const auto known = copies_.find({target_region(), value});
    if (known != copies_.end()) return known->second;
    const ValueId copy = create(std::move(constant), target_type(value));
    std::vector<OpId>& ops = target().regions[at(target_region())].ops;
    std::rotate(ops.begin(), ops.end() - 1, ops.end());
    return copies_[{target_region(), value}] = copy;
  }

  std::map<std::pair<RegionId, ValueId>, ValueId> copies_;
};

class LoopOpener {
 public:
  LoopOpener(const stablehlo::Module& module, Function& function)
      : function_(function), editor_(function) {
    for (const OpId id : ops_in_order(function)) {
      const Op& op = function.op(id);
      if (!is_manual(op)) continue;
      const ManualComputation manual = manual_computation(op, module.place_of(op));
      const stablehlo::Region& body = function.regions[at(op.regions.front())];
      for (std::size_t i = 0; i < manual.in.size() && i < body.arguments.size(); ++i) {
        manual_[body.arguments[i]] = manual.in[i];
      }
      for (std::size_t i = 0; i < manual.out.size(); ++i) manual_[op.results[i]] = manual.out[i];
    }
  }

  void run() {
    visit_region(0);
    editor_.commit();
    compact(function_);
  }

 private:
  // Inner loops first.
  void visit_region(RegionId region) {
    const std::vector<OpId> ops = function_.regions[at(region)].ops;
    for (const OpId id : ops) {
      const std::vector<RegionId> regions = function_.op(id).regions;
      for (const RegionId inner : regions) visit_region(inner);
      if (is_loop(function_.op(id))) open(id);
    }
  }

  void open(OpId loop) {
    std::set<RegionId> inside;
    std::vector<OpId> ops;
    for (const RegionId region : std::vector<RegionId>(function_.op(loop).regions)) {
      collect(region, inside, ops);
    }
    std::map<ValueId, ValueId> opened;
    for (const OpId id : ops) {
      for (std::size_t i = 0; i < function_.op(id).operands.size(); ++i) {
        const ValueId value = function_.op(id).operands[i];
        const stablehlo::AxisSharding* given = given_sharding(value);
        if (given == nullptr || given->dimensions.empty() || is_inside(value, inside)) continue;
        const auto known = opened.find(value);
        const ValueId by = known != opened.end() ? known->second : constraint(value, *given, loop);
        opened[value] = by;
        function_.ops[at(id)].operands[i] = by;
      }
    }
  }

  void collect(RegionId region, std::set<RegionId>& inside, std::vector<OpId>& ops) {
    inside.insert(region);
    for (const OpId id : function_.regions[at(region)].ops) {
      for (const OpId before : placed_before_[id]) ops.push_back(before);
      ops.push_back(id);
      for (const RegionId inner : function_.op(id).regions) collect(inner, inside, ops);
    }
  }

  [[nodiscard]] bool is_inside(ValueId value, const std::set<RegionId>& inside) const {
    const OpId definition = function_.values[at(value)].defined_by;
    if (definition != no_op) return inside.contains(function_.op(definition).parent);
    return std::any_of(inside.begin(), inside.end(), [&](RegionId region) {
      const std::vector<ValueId>& arguments = function_.regions[at(region)].arguments;
      return std::find(arguments.begin(), arguments.end(), value) != arguments.end();
    });
  }

  // What the user says of a value; what flows in and out of manual computations is said there.
  [[nodiscard]] const stablehlo::AxisSharding* given_sharding(ValueId value) const {
    const auto manual = manual_.find(value);
    if (manual != manual_.end()) return &manual->second;
    const auto& given = function_.values[at(value)].sharding.axes;
    return given ? &*given : nullptr;
  }

  ValueId constraint(ValueId value, stablehlo::AxisSharding open, OpId loop) {
    for (stablehlo::DimensionSharding& dimension : open.dimensions) dimension = {{}, true, {}};
    open.replicated.clear();
    Op op;
    op.name = "sdy.sharding_constraint";
    op.operands = {value};
    stablehlo::Attribute text;
    text.kind = stablehlo::Attribute::Kind::dialect;
    const std::string written = text_of(open);
    text.text = written.substr(1, written.size() - 2);  // without < and >
    op.attributes.push_back({"value", std::move(text)});
    const OpId made = editor_.create(std::move(op), function_.type_of(value), loop);
    const ValueId result = function_.op(made).results.front();
    function_.values[at(result)].sharding.axes = std::move(open);
    editor_.place_before(made, loop);
    placed_before_[loop].push_back(made);
    return result;
  }

  Function& function_;
  FunctionEditor editor_;
  std::map<OpId, std::vector<OpId>> placed_before_;
  std::map<ValueId, stablehlo::AxisSharding> manual_;
};

bool contains(const Function& function, bool (*kind)(const Op&)) {
  return std::any_of(function.ops.begin(), function.ops.end(), kind);
}

}  // namespace

// A loop that got narrower can show that one around it does not change a value either.
bool narrow_loops(Function& function) {
  bool any = false;
  for (; LoopNarrower::applies_to(function); any = true) function = LoopNarrower().run(function);
  return any;
}

bool narrow_manual_computations(Function& function) {
  if (!contains(function, is_manual)) return false;
  function = ManualNarrower(function).run(function);
  return true;
}

void sink_constants(Function& function) {
  if (contains(function, [](const Op& op) { return is_loop(op) || is_branch(op); })) {
    function = ConstantSinker().run(function);
  }
}

void open_loop_inputs(const stablehlo::Module& module, Function& function) {
  if (contains(function, is_loop)) LoopOpener(module, function).run();
}

}  // namespace shardsim::spmd
