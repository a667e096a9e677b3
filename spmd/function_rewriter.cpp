#include "spmd/function_rewriter.hpp"

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

template <typename Id>
std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

}  // namespace

Function FunctionRewriter::run(const Function& source) {
  source_ = &source;
  names_.assign(source.values.size(), -1);
  target_ = source;
  target_.values.clear();
  target_.ops.clear();
  target_.regions.assign(1, {});
  region_ = 0;
  copy_region(0, 0);
  return std::move(target_);
}

ValueId FunctionRewriter::renamed(ValueId value) const { return names_[index(value)]; }

std::vector<ValueId> FunctionRewriter::renamed(const std::vector<ValueId>& values) const {
  std::vector<ValueId> result;
  for (const ValueId value : values) result.push_back(renamed(value));
  return result;
}

void FunctionRewriter::replace(ValueId old, ValueId by) { names_[index(old)] = by; }

void FunctionRewriter::copy_region(RegionId from, RegionId to) {
  const RegionId outer = region_;
  region_ = to;
  const Region& region = source_->regions[index(from)];
  for (const ValueId argument : region.arguments) {
    names_[index(argument)] = static_cast<ValueId>(target_.values.size());
    target_.regions[index(to)].arguments.push_back(names_[index(argument)]);
    target_.values.push_back(source_->values[index(argument)]);
  }
  rewrite_region(from);
  region_ = outer;
}

void FunctionRewriter::rewrite_region(RegionId region) {
  for (const OpId id : source_->regions[index(region)].ops) {
    const Op& op = source_->op(id);
    if (!rewrite(op)) copy(op);
  }
}

OpId FunctionRewriter::copy(const Op& op) {
  const OpId id = static_cast<OpId>(target_.ops.size());
  target_.ops.emplace_back();
  target_.regions[index(region_)].ops.push_back(id);
  Op made = op;
  made.parent = region_;
  made.operands = renamed(op.operands);
  for (ValueId& result : made.results) {
    Value value = source_->values[index(result)];
    value.defined_by = id;
    names_[index(result)] = static_cast<ValueId>(target_.values.size());
    result = names_[index(result)];
    target_.values.push_back(std::move(value));
  }
  for (RegionId& region : made.regions) {
    const RegionId from = region;
    region = static_cast<RegionId>(target_.regions.size());
    target_.regions.emplace_back();
    target_.regions.back().owner = id;
    copy_region(from, region);
  }
  target_.ops[index(id)] = std::move(made);
  return id;
}

ValueId FunctionRewriter::create(Op op, stablehlo::TensorType type) {
  const OpId id = static_cast<OpId>(target_.ops.size());
  const ValueId result = static_cast<ValueId>(target_.values.size());
  target_.regions[index(region_)].ops.push_back(id);
  op.parent = region_;
  op.results = {result};
  target_.values.push_back({"", std::move(type), id, 0, {}});
  target_.ops.push_back(std::move(op));
  return result;
}

std::vector<ValueId> FunctionRewriter::splice(const Function& callee,
                                              const std::vector<ValueId>& arguments) {
  const Function* outer_source = source_;
  std::vector<ValueId> outer_names = std::move(names_);
  source_ = &callee;
  names_.assign(callee.values.size(), -1);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    names_[index(callee.body().arguments[i])] = arguments[i];
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
