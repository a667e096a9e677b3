#include "spmd/propagation/function_rewriter.hpp"

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

std::vector<ValueId> kept(const std::vector<ValueId>& values, const std::vector<char>& keep) {
  std::vector<ValueId> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (keep[i] != 0) result.push_back(values[i]);
  }
  return result;
}

}  // namespace

Function FunctionRewriter::run(const Function& source) {
  source_ = &source;
  names_.assign(source.values.size(), -1);
  target_ = {};
  target_.name = source.name;
  target_.is_public = source.is_public;
  target_.argument_attributes = source.argument_attributes;
  target_.results = source.results;
  target_.attributes = source.attributes;
  target_.line = source.line;
  target_.values.reserve(source.values.size());
  target_.ops.reserve(source.ops.size());
  target_.regions.assign(1, {});
  region_ = 0;
  copy_region(0, 0, Kept{});
  return std::move(target_);
}

ValueId FunctionRewriter::renamed(ValueId value) const { return names_[at(value)]; }

std::vector<ValueId> FunctionRewriter::renamed(const std::vector<ValueId>& values) const {
  std::vector<ValueId> result;
  for (const ValueId value : values) result.push_back(renamed(value));
  return result;
}

void FunctionRewriter::replace(ValueId old, ValueId by) { names_[at(old)] = by; }

void FunctionRewriter::copy_region(RegionId from, RegionId to, const Kept& keep) {
  const RegionId outer = region_;
  region_ = to;
  const Region& region = source_->regions[at(from)];
  for (std::size_t i = 0; i < region.arguments.size(); ++i) {
    const ValueId argument = region.arguments[i];
    if (keep.inputs != nullptr && (*keep.inputs)[i] == 0) continue;
    Value value = source_->values[at(argument)];
    value.result = static_cast<int>(target_.regions[at(to)].arguments.size());
    names_[at(argument)] = static_cast<ValueId>(target_.values.size());
    target_.regions[at(to)].arguments.push_back(names_[at(argument)]);
    target_.values.push_back(std::move(value));
  }
  for (const OpId id : region.ops) {
    const Op& op = source_->op(id);
    if (!rewrite(op)) copy(op);
  }
  if (keep.outputs != nullptr) {
    Op& end = target_.ops[at(target_.regions[at(to)].ops.back())];
    // The condition of a loop returns something else.
    if (end.operands.size() == keep.outputs->size()) {
      end.operands = kept(end.operands, *keep.outputs);
    }
  }
  region_ = outer;
}

OpId FunctionRewriter::copy(const Op& op) { return copy(op, Kept{}); }

OpId FunctionRewriter::copy_loop(const Op& loop, const std::vector<char>& keep) {
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (keep[i] != 0) continue;
    const ValueId same = renamed(loop.operands[i]);
    replace(loop.results[i], same);
    for (const RegionId region : loop.regions) {
      replace(source_->regions[at(region)].arguments[i], same);
    }
  }
  return copy(loop, Kept{&keep, &keep});
}

OpId FunctionRewriter::copy_without_inputs(const Op& op, const std::vector<char>& keep) {
  return copy(op, Kept{&keep, nullptr});
}

OpId FunctionRewriter::copy(const Op& op, const Kept& keep) {
  const OpId id = static_cast<OpId>(target_.ops.size());
  target_.ops.emplace_back();
  target_.regions[at(region_)].ops.push_back(id);
  Op made = op;
  made.parent = region_;
  made.operands = renamed(op.operands);
  if (keep.inputs != nullptr) made.operands = kept(made.operands, *keep.inputs);
  if (keep.outputs != nullptr) made.results = kept(made.results, *keep.outputs);
  for (std::size_t i = 0; i < made.results.size(); ++i) {
    const ValueId old = made.results[i];
    Value value = source_->values[at(old)];
    value.defined_by = id;
    value.result = static_cast<int>(i);
    made.results[i] = static_cast<ValueId>(target_.values.size());
    replace(old, made.results[i]);
    target_.values.push_back(std::move(value));
  }
  for (RegionId& region : made.regions) {
    const RegionId from = region;
    region = static_cast<RegionId>(target_.regions.size());
    target_.regions.emplace_back();
    target_.regions.back().owner = id;
    copy_region(from, region, keep);
  }
  target_.ops[at(id)] = std::move(made);
  return id;
}

ValueId FunctionRewriter::create(Op op, stablehlo::TensorType type) {
  const OpId id = static_cast<OpId>(target_.ops.size());
  const ValueId result = static_cast<ValueId>(target_.values.size());
  target_.regions[at(region_)].ops.push_back(id);
  op.parent = region_;
  op.results = {result};
  target_.values.push_back({"", std::move(type), id, 0, {}});
  target_.ops.push_back(std::move(op));
  return result;
}

std::vector<ValueId> FunctionRewriter::create_around(
    Op op, const std::vector<stablehlo::TensorType>& results, const Function& callee,
    const std::string& end) {
  const OpId id = static_cast<OpId>(target_.ops.size());
  const RegionId inner = static_cast<RegionId>(target_.regions.size());
  target_.ops.emplace_back();
  target_.regions[at(region_)].ops.push_back(id);
  target_.regions.emplace_back();
  target_.regions.back().owner = id;
  op.parent = region_;
  op.regions = {inner};
  for (const stablehlo::TensorType& type : results) {
    const int result = static_cast<int>(op.results.size());
    op.results.push_back(static_cast<ValueId>(target_.values.size()));
    target_.values.push_back({"", type, id, result, {}});
  }
  std::vector<ValueId> made = op.results;
  std::vector<ValueId> arguments;
  for (const ValueId argument : callee.body().arguments) {
    const int position = static_cast<int>(arguments.size());
    arguments.push_back(static_cast<ValueId>(target_.values.size()));
    target_.values.push_back({"", callee.type_of(argument), no_op, position, {}});
  }
  target_.regions[at(inner)].arguments = arguments;
  Op terminator;
  terminator.name = end;
  terminator.line = op.line;
  terminator.parent = inner;
  target_.ops[at(id)] = std::move(op);
  const RegionId outer = region_;
  region_ = inner;
  terminator.operands = splice(callee, arguments);
  target_.regions[at(inner)].ops.push_back(static_cast<OpId>(target_.ops.size()));
  target_.ops.push_back(std::move(terminator));
  region_ = outer;
  return made;
}

std::vector<ValueId> FunctionRewriter::splice(const Function& callee,
                                              const std::vector<ValueId>& arguments) {
  const Function* outer_source = source_;
  std::vector<ValueId> outer_names = std::move(names_);
  source_ = &callee;
  names_.assign(callee.values.size(), -1);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    names_[at(callee.body().arguments[i])] = arguments[i];
  }
  std::vector<ValueId> returned;
  for (const OpId id : callee.body().ops) {
    const Op& op = callee.op(id);
    if (op.name == "func.return") {
      returned = renamed(op.operands);
    } else if (!rewrite(op)) {
      copy(op);
    }
  }
  source_ = outer_source;
  names_ = std::move(outer_names);
  return returned;
}

}  // namespace shardsim::spmd
