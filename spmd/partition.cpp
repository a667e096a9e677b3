#include "spmd/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/error.hpp"
#include "base/index.hpp"
#include "spmd/ops/shift_patterns.hpp"
#include "spmd/program_partitioner.hpp"
#include "spmd/propagation/concatenation_axes.hpp"
#include "spmd/reasons.hpp"
#include "spmd/wire_bytes.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::OpId;
using stablehlo::Value;

std::vector<int> all_devices(int count) {
  std::vector<int> all(at(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

ProgramPartitioner::ProgramPartitioner(const Module& program, const PartitionOptions& options)
    : program_(program), function_(program.functions.front()), like_xla_(options.like_xla) {
  local_.name = program.name;
  local_.file = program.file;
  local_.meshes = program.meshes;
  Function& function = local_.functions.emplace_back();
  function.name = function_.name;
  function.argument_attributes = function_.argument_attributes;
  function.regions.emplace_back();
  builder_ = std::make_unique<Builder>(local_);
  values_.resize(function_.values.size());
  users_.assign(function_.values.size(), 0);
  for (const Op& op : function_.ops) {
    for (const ValueId operand : op.operands) ++users_[at(operand)];
  }
  DeviceMesh mesh;
  mesh.devices = {0};
  if (!program.meshes.empty()) {
    const auto most = std::max_element(
        program.meshes.begin(), program.meshes.end(),
        [](const auto& a, const auto& b) { return device_mesh(a).size() < device_mesh(b).size(); });
    mesh = device_mesh(*most);
  }
  const int devices = mesh.size();
  push_scope(std::move(mesh), std::make_unique<Context>(*builder_, devices));
}

void ProgramPartitioner::push_scope(DeviceMesh mesh, std::unique_ptr<Context> context) {
  if (!like_xla_) {
    for (const AxisDigit& digit : axis_digits(mesh)) context->digits.push_back(digit.size);
  }
  scopes_.push_back({std::move(mesh), std::move(context)});
}

void ProgramPartitioner::push_scope() {
  const Scope& outer = scopes_.back();
  const DeviceGroups all = {all_devices(outer.context->devices())};
  push_scope(outer.mesh, std::make_unique<Context>(*builder_, outer.context->to_program(all)));
}

Tiling ProgramPartitioner::tiling_of(ValueId value) const {
  const Value& described = function_.values[at(value)];
  if (!described.sharding.axes || !described.type.is_tensor) return {};
  return spmd::tiling_of(scopes_.back().mesh, *described.sharding.axes, described.type.rank(),
                         {program_.file, "%" + described.name});
}

TensorType ProgramPartitioner::local_type(ValueId value, const Tiling& tiling) const {
  TensorType type = function_.type_of(value);
  type.dims = shard_shape(type.dims, tiling);
  return type;
}

// A value from outside the region keeps its tiling; what it is resharded to inside is made there.
Sharded ProgramPartitioner::value_in_scope(ValueId value) {
  Sharded sharded = values_[at(value)];
  assert(sharded.value >= 0 && "used before it is made");
  sharded.context = &context();
  return sharded;
}

Sharded ProgramPartitioner::operand(const OpView& op, std::size_t index) {
  if (index >= op.op().operands.size()) op.fail(fmt::format("operand {} is missing", index));
  return value_in_scope(op.op().operands[index]);
}

Tiling ProgramPartitioner::tiling_of_result(const OpView& op, std::size_t index) {
  return tiling_of(op.op().results.at(index));
}

void ProgramPartitioner::set_result(const OpView& op, std::size_t index, const Sharded& value) {
  const ValueId result = op.op().results.at(index);
  values_[at(result)] = value;
  builder_->holds(value.value, result);
}

int ProgramPartitioner::users_of_result(const OpView& op, std::size_t index) {
  return users_[at(op.op().results.at(index))];
}

std::vector<ValueId> ProgramPartitioner::clone(const OpView& op,
                                               const std::vector<ValueId>& operands,
                                               const std::vector<TensorType>& types) {
  AttributeList attributes;
  for (const auto& attribute : op.op().attributes) {
    if (attribute.name.rfind("sdy.", 0) != 0) attributes.push_back(attribute);
  }
  std::vector<RegionId> regions;
  for (const RegionId region : op.op().regions) {
    regions.push_back(builder_->copy_region(function_, region));
  }
  const std::string_view name = op.op().name;
  const bool moves = name == "sdy.reshard" || name == "sdy.sharding_constraint";
  if (is_explicit_collective(name)) {
    attributes.push_back({"spmd.origin", integer_attribute(builder_->origin())});
  }
  return builder_->add_many(name == "sdy.constant" ? "stablehlo.constant"
                            : moves                ? "spmd.copy"
                                                   : name,
                            operands, types, std::move(attributes), std::move(regions));
}

void ProgramPartitioner::replicated(const OpView& op) {
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < op.op().operands.size(); ++i) {
    operands.push_back(reshard(operand(op, i), Tiling()).value);
  }
  std::vector<TensorType> types;
  for (const ValueId result : op.op().results) types.push_back(function_.type_of(result));
  const std::vector<ValueId> made = clone(op, operands, types);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Sharded whole{made[i], types[i].dims, Tiling(), &context()};
    set_result(op, i, reshard(whole, tiling_of_result(op, i)));
  }
}

void ProgramPartitioner::visit(const Op& op) {
  const OpView view(program_, function_, op);
  builder_->set_origin(op.line, op.results.empty()
                                    ? stablehlo::no_op
                                    : function_.values[at(op.results[0])].defined_by);
  if (op.name == "stablehlo.while") return loop(view);
  if (op.name == "stablehlo.case" || op.name == "stablehlo.if") return branches(view);
  if (op.name == "sdy.manual_computation") return manual_computation(view);
  if (op.name == "stablehlo.optimization_barrier") return barrier(view);
  if (is_explicit_collective(op.name)) return in_place(view);
  if (const Handler handler = handler_of(op)) return handler(*this, view);
  if (op.name == "func.call") view.fail("calls must have been inlined");
  replicated(view);
}

void ProgramPartitioner::visit(const Region& region) {
  for (const OpId id : region.ops) {
    if (id != region.ops.back()) visit(function_.op(id));
  }
}

Module ProgramPartitioner::run() {
  const Region& body = function_.body();
  for (const ValueId argument : body.arguments) {
    const Tiling tiling = tiling_of(argument);
    const ValueId value =
        builder_->add_argument(local_type(argument, tiling), function_.values[at(argument)].name);
    values_[at(argument)] = {value, function_.type_of(argument).dims, tiling, &context()};
    builder_->holds(value, argument);
  }
  visit(body);
  const Op& end = function_.op(body.ops.back());
  std::vector<ValueId> returned;
  for (std::size_t i = 0; i < end.operands.size(); ++i) {
    // XLA brings the elements of a tuple to their results, but a lone result from outside: what the
    // value was resharded to before, and where it was broadcast, is forgotten.
    const bool forgets = like_xla_ && end.operands.size() == 1;
    if (forgets) {
      push_scope();
      builder_->forget_broadcasts();
    }
    const Sharded value = value_in_scope(end.operands[i]);
    Tiling tiling = value.tiling;
    if (i < function_.results.size() && function_.results[i].sharding.axes) {
      tiling = spmd::tiling_of(scopes_.back().mesh, *function_.results[i].sharding.axes,
                               value.shape.size(), {program_.file, "result"});
    }
    builder_->set_origin(end.line, body.ops.back());
    returned.push_back(reshard(value, tiling).value);
    if (forgets) scopes_.pop_back();
    stablehlo::FunctionResult result = function_.results.at(i);
    result.type = builder_->type(returned.back());
    local_.functions.front().results.push_back(std::move(result));
  }
  builder_->add_many(end.name, returned, {});
  clean_up(local_);
  write_reasons(local_, program_);
  return std::move(local_);
}

namespace {

Module aligned(Module program) {
  align_concatenations(program);
  merge_shifts(program);
  return program;
}

}  // namespace

Module partition(const Module& program, const PartitionOptions& options) {
  if (!options.like_xla) return partition_by_choice(program).local;
  return ProgramPartitioner(aligned(program), options).run();
}

PartitionChoice partition_by_choice(const Module& program) {
  const Module merged = aligned(program);
  Module like_xla = ProgramPartitioner(merged, {.like_xla = true}).run();
  const double usual = wire_bytes(like_xla);
  if (usual == 0) return {std::move(like_xla), 0, 0};
  // What is cheapest for each value alone may cost more together: XLA reuses what it gathered once.
  Module by_choice = ProgramPartitioner(merged, {}).run();
  const double bytes = wire_bytes(by_choice);
  if (bytes < usual) return {std::move(by_choice), bytes, usual};
  return {std::move(like_xla), usual, usual};
}

}  // namespace shardsim::spmd
