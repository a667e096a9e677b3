#include "spmd/propagation/function_editor.hpp"

#include <fmt/format.h>

#include "base/index.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::no_op;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::Region;
using stablehlo::RegionId;
using stablehlo::Value;
using stablehlo::ValueId;

namespace {

void collect(const Function& function, RegionId region, std::vector<OpId>& order) {
  for (const OpId id : function.regions[at(region)].ops) {
    order.push_back(id);
    for (const RegionId inner : function.op(id).regions) collect(function, inner, order);
  }
}

}  // namespace

std::vector<OpId> ops_in_order(const Function& function) {
  std::vector<OpId> order;
  collect(function, 0, order);
  return order;
}

std::vector<std::vector<Use>> uses_of(const Function& function) {
  std::vector<std::vector<Use>> uses(function.values.size());
  for (const OpId id : ops_in_order(function)) {
    const std::vector<ValueId>& operands = function.op(id).operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      uses[at(operands[i])].push_back({id, i});
    }
  }
  return uses;
}

std::vector<int> reader_counts(const Function& function) {
  std::vector<int> counts(function.values.size(), 0);
  for (const Op& op : function.ops) {
    for (const ValueId operand : op.operands) ++counts[at(operand)];
  }
  return counts;
}

FunctionEditor::FunctionEditor(Function& function)
    : function_(function), around_(function.ops.size()), first_(function.regions.size()) {}

FunctionEditor::Around& FunctionEditor::around(OpId op) {
  if (around_.size() < function_.ops.size()) around_.resize(function_.ops.size());
  return around_[at(op)];
}

OpId FunctionEditor::clone(OpId op) {
  const OpId id = static_cast<OpId>(function_.ops.size());
  Op copy = function_.op(op);
  for (ValueId& result : copy.results) {
    Value value = function_.values[at(result)];
    value.defined_by = id;
    result = static_cast<ValueId>(function_.values.size());
    function_.values.push_back(std::move(value));
  }
  function_.ops.push_back(std::move(copy));
  return id;
}

OpId FunctionEditor::create(Op op, stablehlo::TensorType result, OpId near) {
  const OpId id = static_cast<OpId>(function_.ops.size());
  op.parent = function_.op(near).parent;
  op.line = function_.op(near).line;
  op.results = {static_cast<ValueId>(function_.values.size())};
  function_.values.push_back({"", std::move(result), id, 0, {}});
  function_.ops.push_back(std::move(op));
  return id;
}

void FunctionEditor::place_before(OpId op, OpId anchor) {
  function_.ops[at(op)].parent = function_.op(anchor).parent;
  around(anchor).before.push_back(op);
}

void FunctionEditor::place_after(OpId op, OpId anchor) {
  function_.ops[at(op)].parent = function_.op(anchor).parent;
  around(anchor).after.push_back(op);
}

void FunctionEditor::place_first(OpId op, RegionId region) {
  function_.ops[at(op)].parent = region;
  first_[at(region)].push_back(op);
}

void FunctionEditor::erase(OpId op) { around(op).erased = true; }

void FunctionEditor::emit(OpId op, std::vector<OpId>& order) {
  // A moved op is erased where it was; what hangs on that place stays there.
  const Around here = around(op);
  for (const OpId before : here.before) emit(before, order);
  order.push_back(op);
  for (const OpId after : here.after) emit(after, order);
}

void FunctionEditor::commit() {
  for (std::size_t r = 0; r < function_.regions.size(); ++r) {
    std::vector<OpId> order;
    for (const OpId op : first_[r]) emit(op, order);
    for (const OpId op : function_.regions[r].ops) {
      if (!around(op).erased) {
        emit(op, order);
        continue;
      }
      for (const OpId before : Around(around(op)).before) emit(before, order);
      for (const OpId after : Around(around(op)).after) emit(after, order);
    }
    function_.regions[r].ops = std::move(order);
  }
  around_.assign(function_.ops.size(), {});
  first_.assign(function_.regions.size(), {});
}

namespace {

class Compactor {
 public:
  explicit Compactor(Function& function) : old_(function), values_(function.values.size(), -1) {}

  void run() {
    region(0, no_op);
    old_.values = std::move(fresh_.values);
    old_.ops = std::move(fresh_.ops);
    old_.regions = std::move(fresh_.regions);
  }

 private:
  ValueId define(ValueId id, OpId by, std::string name) {
    Value value = std::move(old_.values[at(id)]);
    value.defined_by = by;
    if (!name.empty()) value.name = std::move(name);
    values_[at(id)] = static_cast<ValueId>(fresh_.values.size());
    fresh_.values.push_back(std::move(value));
    return values_[at(id)];
  }

  RegionId region(RegionId id, OpId owner) {
    const RegionId fresh = static_cast<RegionId>(fresh_.regions.size());
    fresh_.regions.emplace_back();
    Region made;
    made.owner = owner;
    for (const ValueId argument : old_.regions[at(id)].arguments) {
      std::string name = fmt::format("arg{}", arguments_++);
      made.arguments.push_back(define(argument, no_op, std::move(name)));
    }
    for (const OpId inner : old_.regions[at(id)].ops) {
      made.ops.push_back(op(inner, fresh));
    }
    fresh_.regions[at(fresh)] = std::move(made);
    return fresh;
  }

  OpId op(OpId id, RegionId parent) {
    const OpId fresh = static_cast<OpId>(fresh_.ops.size());
    fresh_.ops.emplace_back();
    Op made = std::move(old_.ops[at(id)]);
    made.parent = parent;
    for (ValueId& operand : made.operands) operand = values_[at(operand)];
    const int number = made.results.empty() ? 0 : results_++;
    for (std::size_t i = 0; i < made.results.size(); ++i) {
      std::string name =
          made.results.size() == 1 ? fmt::format("{}", number) : fmt::format("{}#{}", number, i);
      made.results[i] = define(made.results[i], fresh, std::move(name));
    }
    for (RegionId& inner : made.regions) inner = region(inner, fresh);
    fresh_.ops[at(fresh)] = std::move(made);
    return fresh;
  }

  Function& old_;
  Function fresh_;
  std::vector<ValueId> values_;  // new ids by old
  int arguments_ = 0;
  int results_ = 0;
};

}  // namespace

void compact(Function& function) { Compactor(function).run(); }

}  // namespace shardsim::spmd
