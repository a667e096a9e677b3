#include <map>
#include <tuple>

#include "base/index.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/propagation/import_passes.hpp"
#include "spmd/propagation/op_kinds.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::ValueId;

namespace {

class ConstantSplitter {
 public:
  explicit ConstantSplitter(Function& function)
      : function_(function), editor_(function), kinds_(function.ops.size(), Kind::other) {}

  void run() {
    const std::vector<OpId> order = ops_in_order(function_);
    for (const OpId id : order) visit(id);
    drop_unused(order);
    editor_.commit();
  }

 private:
  enum class Kind { other, constant, scalar_expansion };

  [[nodiscard]] Kind kind_of(ValueId value) const {
    const OpId id = function_.values[at(value)].defined_by;
    if (id == stablehlo::no_op || static_cast<std::size_t>(id) >= kinds_.size()) return Kind::other;
    return kinds_[at(id)];
  }

  [[nodiscard]] bool is_constant_expression(const Op& op) const {
    if (is_constant(op) || op.name == "stablehlo.iota") return true;
    if (op.name != "stablehlo.broadcast_in_dim" && op.name != "stablehlo.reshape" &&
        op.name != "stablehlo.slice" && !is_elementwise(function_, op)) {
      return false;
    }
    for (const ValueId operand : op.operands) {
      if (kind_of(operand) != Kind::constant) return false;
    }
    return is_pure(op) && !op.operands.empty();
  }

  void visit(OpId id) {
    const Op& op = function_.op(id);
    if (op.name == "sdy.sharding_group") return;
    if (is_constant_expression(op)) {
      kinds_[at(id)] = Kind::constant;
    } else if (is_scalar_expansion(function_, op)) {
      kinds_[at(id)] = Kind::scalar_expansion;
    } else {
      for (std::size_t i = 0; i < function_.op(id).operands.size(); ++i) {
        const ValueId operand = function_.op(id).operands[i];
        if (kind_of(operand) == Kind::other) continue;
        std::map<ValueId, ValueId> copies;
        const ValueId copy = copy_of(operand, copies);
        function_.ops[at(id)].operands[i] = copy;
      }
    }
  }

  // Copies stand before their originals; scalars are never split and need none.
  ValueId copy_of(ValueId value, std::map<ValueId, ValueId>& copies) {
    const OpId id = function_.values[at(value)].defined_by;
    if (id == stablehlo::no_op || is_scalar(function_.type_of(value))) return value;
    if (const auto known = copies.find(value); known != copies.end()) return known->second;
    const OpId copy = editor_.clone(id);
    for (std::size_t i = 0; i < function_.op(id).operands.size(); ++i) {
      const ValueId operand = copy_of(function_.op(id).operands[i], copies);
      function_.ops[at(copy)].operands[i] = operand;
    }
    editor_.place_before(copy, id);
    const int result = function_.values[at(value)].result;
    return copies[value] = function_.op(copy).results[at(result)];
  }

  void drop_unused(const std::vector<OpId>& order) {
    std::vector<int> uses(function_.values.size(), 0);
    for (const Op& op : function_.ops) {
      for (const ValueId operand : op.operands) ++uses[at(operand)];
    }
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (kinds_[at(*id)] == Kind::other) continue;
      const Op& op = function_.op(*id);
      if (uses[at(op.results.front())] > 0) continue;
      for (const ValueId operand : op.operands) --uses[at(operand)];
      editor_.erase(*id);
    }
  }

  Function& function_;
  FunctionEditor editor_;
  std::vector<Kind> kinds_;  // of the ops that were there before
};

std::string key_of(const stablehlo::Attribute& attribute) {
  std::string key = attribute.name + '<' + attribute.text + ':' + attribute.type + '>' +
                    std::to_string(attribute.integer);
  for (const stablehlo::Attribute& item : attribute.items) key += '[' + key_of(item);
  for (const stablehlo::NamedAttribute& entry : attribute.entries) {
    key += '{' + entry.name + key_of(entry.value);
  }
  return key;
}

// What makes two constants, or two broadcasts of one scalar, the same.
std::string key_of(const Function& function, const Op& op) {
  const stablehlo::Value& result = function.values[at(op.results.front())];
  std::string key = std::to_string(op.parent) + text_of(result.type);
  if (result.sharding.axes) key += text_of(*result.sharding.axes);
  if (is_constant(op)) {
    if (const stablehlo::Attribute* value = find(op.attributes, "value")) key += key_of(*value);
  } else {
    key += '%' + std::to_string(op.operands.front());
  }
  return key;
}

}  // namespace

void split_constants(Function& function) {
  ConstantSplitter(function).run();
  compact(function);
}

void merge_constants(Function& function) {
  FunctionEditor editor(function);
  std::map<std::string, ValueId> first;
  std::vector<ValueId> same(function.values.size());
  for (std::size_t i = 0; i < same.size(); ++i) same[i] = static_cast<ValueId>(i);
  for (const OpId id : ops_in_order(function)) {
    Op& op = function.ops[at(id)];
    for (ValueId& operand : op.operands) operand = same[at(operand)];
    if (!is_constant(op) && !is_scalar_expansion(function, op)) continue;
    const auto [known, is_new] = first.emplace(key_of(function, op), op.results.front());
    if (is_new) continue;
    same[at(op.results.front())] = known->second;
    editor.erase(id);
  }
  editor.commit();
  compact(function);
}

}  // namespace shardsim::spmd
