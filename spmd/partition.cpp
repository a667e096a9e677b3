#include "spmd/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "spmd/axis_tiling.hpp"
#include "spmd/partitioner.hpp"
#include "spmd/shift_patterns.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::Module;
using stablehlo::OpId;
using stablehlo::Region;
using stablehlo::Value;

std::size_t at(std::int64_t id) { return static_cast<std::size_t>(id); }

struct Row {
  std::string_view op;
  Handler handler;
};

// Whatever is not listed here, and is no loop, branch or call, runs whole on every device.
constexpr std::array rows{
    Row{"stablehlo.broadcast_in_dim", partition_broadcast},
    Row{"stablehlo.concatenate", partition_concatenate},
    Row{"stablehlo.convolution", partition_convolution},
    Row{"stablehlo.custom_call", partition_custom_call},
    Row{"stablehlo.dot", partition_dot_general},
    Row{"stablehlo.dot_general", partition_dot_general},
    Row{"stablehlo.dynamic_slice", partition_dynamic_slice},
    Row{"stablehlo.dynamic_update_slice", partition_dynamic_update_slice},
    Row{"stablehlo.gather", partition_gather},
    Row{"stablehlo.iota", partition_iota},
    Row{"stablehlo.pad", partition_pad},
    Row{"stablehlo.reduce", partition_reduce},
    Row{"stablehlo.reduce_window", partition_reduce_window},
    Row{"stablehlo.reshape", partition_reshape},
    Row{"stablehlo.reverse", partition_reverse},
    Row{"stablehlo.scatter", partition_scatter},
    Row{"stablehlo.select_and_scatter", partition_select_and_scatter},
    Row{"stablehlo.slice", partition_slice},
    Row{"stablehlo.sort", partition_sort},
    Row{"stablehlo.transpose", partition_transpose},
    Row{"spmd.rotate", partition_rotate},
    Row{"mhlo.topk", partition_custom_call},
    Row{"chlo.top_k", partition_custom_call},
};

constexpr std::array<std::string_view, 64> elementwise = {"stablehlo.abs",
                                                          "stablehlo.add",
                                                          "stablehlo.and",
                                                          "stablehlo.atan2",
                                                          "stablehlo.cbrt",
                                                          "stablehlo.ceil",
                                                          "stablehlo.clamp",
                                                          "stablehlo.compare",
                                                          "stablehlo.complex",
                                                          "stablehlo.convert",
                                                          "stablehlo.cosine",
                                                          "stablehlo.count_leading_zeros",
                                                          "stablehlo.divide",
                                                          "stablehlo.exponential",
                                                          "stablehlo.exponential_minus_one",
                                                          "stablehlo.floor",
                                                          "stablehlo.imag",
                                                          "stablehlo.is_finite",
                                                          "stablehlo.log",
                                                          "stablehlo.log_plus_one",
                                                          "stablehlo.logistic",
                                                          "stablehlo.maximum",
                                                          "stablehlo.minimum",
                                                          "stablehlo.multiply",
                                                          "stablehlo.negate",
                                                          "stablehlo.not",
                                                          "stablehlo.or",
                                                          "stablehlo.popcnt",
                                                          "stablehlo.power",
                                                          "stablehlo.real",
                                                          "stablehlo.reduce_precision",
                                                          "stablehlo.remainder",
                                                          "stablehlo.round_nearest_afz",
                                                          "stablehlo.round_nearest_even",
                                                          "stablehlo.rsqrt",
                                                          "stablehlo.select",
                                                          "stablehlo.shift_left",
                                                          "stablehlo.shift_right_arithmetic",
                                                          "stablehlo.shift_right_logical",
                                                          "stablehlo.sign",
                                                          "stablehlo.sine",
                                                          "stablehlo.sqrt",
                                                          "stablehlo.subtract",
                                                          "stablehlo.tan",
                                                          "stablehlo.tanh",
                                                          "stablehlo.xor",
                                                          "chlo.square",
                                                          "chlo.erf",
                                                          "chlo.erf_inv",
                                                          "chlo.erfc",
                                                          "chlo.lgamma",
                                                          "chlo.digamma",
                                                          "chlo.acos",
                                                          "chlo.acosh",
                                                          "chlo.asin",
                                                          "chlo.asinh",
                                                          "chlo.atan",
                                                          "chlo.atanh",
                                                          "chlo.cosh",
                                                          "chlo.sinh",
                                                          "chlo.tan",
                                                          "chlo.is_inf",
                                                          "sdy.reshard",
                                                          "sdy.sharding_constraint"};

bool is_elementwise(std::string_view name) {
  return std::find(elementwise.begin(), elementwise.end(), name) != elementwise.end();
}

bool is_explicit_collective(std::string_view name) {
  return name == "stablehlo.all_reduce" || name == "stablehlo.all_gather" ||
         name == "stablehlo.reduce_scatter" || name == "stablehlo.all_to_all" ||
         name == "stablehlo.collective_permute" || name == "stablehlo.collective_broadcast";
}

// Prime factors of the axes; none where devices are numbered in another order than the mesh.
std::vector<std::int64_t> digits_of(const DeviceMesh& mesh) {
  for (std::size_t i = 0; i < mesh.devices.size(); ++i) {
    if (mesh.devices[i] != static_cast<int>(i)) return {};
  }
  std::vector<std::int64_t> digits;
  for (const auto& axis : mesh.axes) {
    std::int64_t rest = axis.size;
    for (std::int64_t factor = 2; rest > 1; factor += rest % factor == 0 ? 0 : 1) {
      if (rest % factor != 0) continue;
      digits.push_back(factor);
      rest /= factor;
    }
  }
  return digits;
}

class ProgramPartitioner final : public Partitioner {
 public:
  ProgramPartitioner(const Module& program, const PartitionOptions& options);
  Module run();

  Context& context() override { return *scopes_.back().context; }
  Builder& builder() override { return *builder_; }
  Sharded operand(const OpView& op, std::size_t index) override;
  Tiling tiling_of_result(const OpView& op, std::size_t index) override;
  void set_result(const OpView& op, std::size_t index, const Sharded& value) override;
  int users_of_result(const OpView& op, std::size_t index) override;
  std::vector<ValueId> clone(const OpView& op, const std::vector<ValueId>& operands,
                             const std::vector<TensorType>& types) override;
  void replicated(const OpView& op) override;

 private:
  // The devices that ops are partitioned over: all, or within a manual computation those that share
  // the manual axes.
  struct Scope {
    DeviceMesh mesh;
    std::unique_ptr<Context> context;
  };

  void visit(const Region& region);
  void visit(const Op& op);
  void loop(const OpView& op);
  void branches(const OpView& op);
  void manual_computation(const OpView& op);
  void barrier(const OpView& op);
  void in_place(const OpView& op);
  void push_scope();
  Tiling tiling_of(ValueId value) const;
  TensorType local_type(ValueId value, const Tiling& tiling) const;
  void bind_arguments(RegionId from, RegionId to, const std::vector<Tiling>& tilings);
  [[nodiscard]] Sharded value_in_scope(ValueId value);

  const Module& program_;
  const Function& function_;
  Module local_;
  std::unique_ptr<Builder> builder_;
  std::vector<Scope> scopes_;
  std::vector<Sharded> values_;  // by value of the program
  std::vector<int> users_;
};

ProgramPartitioner::ProgramPartitioner(const Module& program, const PartitionOptions& options)
    : program_(program), function_(program.functions.front()) {
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
  Scope& scope = scopes_.emplace_back();
  if (!program.meshes.empty()) {
    const auto most = std::max_element(
        program.meshes.begin(), program.meshes.end(),
        [](const auto& a, const auto& b) { return device_mesh(a).size() < device_mesh(b).size(); });
    scope.mesh = device_mesh(*most);
  } else {
    scope.mesh.devices = {0};
  }
  scope.context = std::make_unique<Context>(*builder_, scope.mesh.size());
  if (!options.like_xla) scope.context->digits = digits_of(scope.mesh);
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
  values_[at(op.op().results.at(index))] = value;
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
    attributes.push_back({"spmd.reason", text_attribute("written in the program")});
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

void ProgramPartitioner::push_scope() {
  Scope& outer = scopes_.back();
  Scope inner;
  inner.mesh = outer.mesh;
  inner.context = std::make_unique<Context>(*builder_, outer.context->to_program({[&] {
    std::vector<int> all(at(outer.context->devices()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    return all;
  }()}));
  scopes_.push_back(std::move(inner));
}

void ProgramPartitioner::bind_arguments(RegionId from, RegionId to,
                                        const std::vector<Tiling>& tilings) {
  const std::vector<ValueId>& sources = function_.regions[at(from)].arguments;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    values_[at(sources[i])] = {builder_->arguments_of(to)[i], function_.type_of(sources[i]).dims,
                               tilings[i], &context()};
  }
}

void ProgramPartitioner::loop(const OpView& op) {
  std::vector<ValueId> operands;
  std::vector<Tiling> tilings;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < op.op().results.size(); ++i) {
    tilings.push_back(tiling_of_result(op, i));
    operands.push_back(reshard(operand(op, i), tilings.back()).value);
    types.push_back(local_type(op.op().results[i], tilings.back()));
  }
  std::vector<RegionId> regions;
  for (std::size_t part = 0; part < op.op().regions.size(); ++part) {
    const RegionId region = op.op().regions[part];
    push_scope();
    const RegionId made = builder_->begin_region(types);
    bind_arguments(region, made, tilings);
    const Region& source = function_.regions[at(region)];
    visit(source);
    std::vector<ValueId> returned;
    const Op& end = function_.op(source.ops.back());
    for (std::size_t i = 0; i < end.operands.size(); ++i) {
      // The condition answers one truth value, the body the next state.
      const Tiling wanted = part == 0 ? Tiling() : tilings.at(i);
      returned.push_back(reshard(value_in_scope(end.operands[i]), wanted).value);
    }
    builder_->end_region(end.name, returned);
    regions.push_back(made);
    scopes_.pop_back();
  }
  const std::vector<ValueId> made =
      builder_->add_many(op.op().name, operands, types, {}, std::move(regions));
  for (std::size_t i = 0; i < made.size(); ++i) {
    set_result(op, i, {made[i], op.result(i), tilings[i], &context()});
  }
}

void ProgramPartitioner::branches(const OpView& op) {
  const ValueId selector = replicate(operand(op, 0)).value;
  std::vector<Tiling> tilings;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < op.op().results.size(); ++i) {
    tilings.push_back(tiling_of_result(op, i));
    types.push_back(local_type(op.op().results[i], tilings.back()));
  }
  std::vector<RegionId> regions;
  for (const RegionId region : op.op().regions) {
    push_scope();
    const RegionId made = builder_->begin_region({});
    const Region& source = function_.regions[at(region)];
    visit(source);
    std::vector<ValueId> returned;
    const Op& end = function_.op(source.ops.back());
    for (std::size_t i = 0; i < end.operands.size(); ++i) {
      returned.push_back(reshard(value_in_scope(end.operands[i]), tilings[i]).value);
    }
    builder_->end_region(end.name, returned);
    regions.push_back(made);
    scopes_.pop_back();
  }
  const std::vector<ValueId> made =
      builder_->add_many(op.op().name, {selector}, types, {}, std::move(regions));
  for (std::size_t i = 0; i < made.size(); ++i) {
    set_result(op, i, {made[i], op.result(i), tilings[i], &context()});
  }
}

void ProgramPartitioner::manual_computation(const OpView& op) {
  const auto shardings = [&](std::string_view name) {
    const stablehlo::Attribute* list = op.attribute({name});
    std::vector<stablehlo::AxisSharding> result;
    for (const auto& item : list == nullptr ? std::vector<stablehlo::Attribute>{} : list->items) {
      stablehlo::Scanner body(item.text, program_.file, op.op().line);
      result.push_back(stablehlo::parse_axis_sharding(body));
    }
    return result;
  };
  const auto ins = shardings("in_shardings");
  const auto outs = shardings("out_shardings");
  const Place place = program_.place_of(op.op());
  const Region& body = function_.regions[at(op.op().regions.front())];
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < op.op().operands.size(); ++i) {
    const Tiling tiling =
        spmd::tiling_of(scopes_.back().mesh, ins.at(i), op.operand(i).size(), place);
    operands.push_back(reshard(operand(op, i), tiling).value);
  }
  std::vector<std::string> manual;
  if (const stablehlo::Attribute* axes = op.attribute({"manual_axes"})) {
    for (const auto& item : axes->items) manual.push_back(item.text);
    for (const auto& entry : axes->entries) manual.push_back(entry.name);
  }
  Scope inner;
  DeviceGroups groups;
  inner.mesh = without_axes(scopes_.back().mesh, manual, groups);
  inner.context = std::make_unique<Context>(*builder_, context().to_program(groups));
  scopes_.push_back(std::move(inner));
  for (std::size_t i = 0; i < body.arguments.size(); ++i) {
    // Seen from inside, the manual axes are gone from the tiling.
    const ValueId argument = body.arguments[i];
    const Shape& shape = function_.type_of(argument).dims;
    const Tiling tiling = spmd::tiling_of(scopes_.back().mesh, ins.at(i), shape.size(), place);
    values_[at(argument)] = {operands[i], shape, tiling, &context()};
  }
  visit(body);
  const Op& end = function_.op(body.ops.back());
  std::vector<ValueId> returned;
  for (std::size_t i = 0; i < end.operands.size(); ++i) {
    const Sharded value = value_in_scope(end.operands[i]);
    const Tiling tiling =
        spmd::tiling_of(scopes_.back().mesh, outs.at(i), value.shape.size(), place);
    returned.push_back(reshard(value, tiling).value);
  }
  scopes_.pop_back();
  for (std::size_t i = 0; i < returned.size(); ++i) {
    const Tiling tiling =
        spmd::tiling_of(scopes_.back().mesh, outs.at(i), op.result(i).size(), place);
    const Sharded value{returned[i], op.result(i), tiling, &context()};
    set_result(op, i, reshard(value, tiling_of_result(op, i)));
  }
}

void ProgramPartitioner::barrier(const OpView& op) {
  std::vector<ValueId> operands;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < op.op().operands.size(); ++i) {
    const Tiling tiling = tiling_of_result(op, i);
    operands.push_back(reshard(operand(op, i), tiling).value);
    types.push_back(local_type(op.op().results[i], tiling));
  }
  const std::vector<ValueId> made = builder_->add_many(op.op().name, operands, types);
  for (std::size_t i = 0; i < made.size(); ++i) {
    set_result(op, i, {made[i], op.result(i), tiling_of_result(op, i), &context()});
  }
}

// Explicit collectives of a manual computation: each device's tile takes part as it is.
void ProgramPartitioner::in_place(const OpView& op) {
  std::vector<ValueId> operands;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < op.op().operands.size(); ++i) {
    const Tiling tiling = tiling_of_result(op, std::min(i, op.op().results.size() - 1));
    operands.push_back(reshard(operand(op, i), tiling).value);
  }
  for (std::size_t i = 0; i < op.op().results.size(); ++i) {
    types.push_back(local_type(op.op().results[i], tiling_of_result(op, i)));
  }
  const std::vector<ValueId> made = clone(op, operands, types);
  for (std::size_t i = 0; i < made.size(); ++i) {
    set_result(op, i, {made[i], op.result(i), tiling_of_result(op, i), &context()});
  }
}

void ProgramPartitioner::visit(const Op& op) {
  const OpView view(program_, function_, op);
  builder_->set_origin(op.line, fmt::format("{}, line {}", op.name, op.line));
  if (op.name == "stablehlo.while") return loop(view);
  if (op.name == "stablehlo.case" || op.name == "stablehlo.if") return branches(view);
  if (op.name == "sdy.manual_computation") return manual_computation(view);
  if (op.name == "stablehlo.optimization_barrier") return barrier(view);
  if (is_explicit_collective(op.name)) return in_place(view);
  if (is_elementwise(op.name) && op.results.size() == 1) return partition_elementwise(*this, view);
  for (const Row& row : rows) {
    if (row.op == op.name) return row.handler(*this, view);
  }
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
  for (std::size_t i = 0; i < body.arguments.size(); ++i) {
    const ValueId argument = body.arguments[i];
    const Tiling tiling = tiling_of(argument);
    const ValueId value =
        builder_->add_argument(local_type(argument, tiling), function_.values[at(argument)].name);
    values_[at(argument)] = {value, function_.type_of(argument).dims, tiling, &context()};
  }
  visit(body);
  const Op& end = function_.op(body.ops.back());
  std::vector<ValueId> returned;
  for (std::size_t i = 0; i < end.operands.size(); ++i) {
    // XLA takes every result out of a tuple: what the value was resharded to before is forgotten.
    push_scope();
    const Sharded value = value_in_scope(end.operands[i]);
    Tiling tiling = value.tiling;
    if (i < function_.results.size() && function_.results[i].sharding.axes) {
      tiling = spmd::tiling_of(scopes_.back().mesh, *function_.results[i].sharding.axes,
                               value.shape.size(), {program_.file, "result"});
    }
    builder_->set_origin(end.line, fmt::format("result {} of the program", i));
    returned.push_back(reshard(value, tiling).value);
    scopes_.pop_back();
    stablehlo::FunctionResult result = function_.results.at(i);
    result.type = builder_->type(returned.back());
    local_.functions.front().results.push_back(std::move(result));
  }
  builder_->add_many(end.name, returned, {});
  clean_up(local_);
  return std::move(local_);
}

}  // namespace

stablehlo::Module partition(const stablehlo::Module& program, const PartitionOptions& options) {
  Module merged = program;
  merge_shifts(merged);
  return ProgramPartitioner(merged, options).run();
}

}  // namespace shardsim::spmd
