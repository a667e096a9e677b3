// Loops, branches and manual computations: ops whose regions are partitioned within them.
#include <algorithm>

#include "base/index.hpp"
#include "spmd/program_partitioner.hpp"

namespace shardsim::spmd {
void ProgramPartitioner::bind_arguments(RegionId from, RegionId to,
                                        const std::vector<Tiling>& tilings) {
  const std::vector<ValueId>& sources = function_.regions[at(from)].arguments;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    values_[at(sources[i])] = {builder_->arguments_of(to)[i], function_.type_of(sources[i]).dims,
                               tilings[i], &context()};
    builder_->holds(builder_->arguments_of(to)[i], sources[i]);
  }
}

RegionId ProgramPartitioner::partition_region(const OpView& op, RegionId region,
                                              const std::vector<TensorType>& types,
                                              const std::vector<Tiling>& arguments,
                                              const std::vector<Tiling>& results) {
  push_scope();
  const RegionId made = builder_->begin_region(types);
  bind_arguments(region, made, arguments);
  const Region& source = function_.regions[at(region)];
  visit(source);
  std::vector<ValueId> returned;
  const Op& end = function_.op(source.ops.back());
  builder_->set_origin(op.op().line, source.owner);
  for (std::size_t i = 0; i < end.operands.size(); ++i) {
    returned.push_back(reshard(value_in_scope(end.operands[i]), results.at(i)).value);
  }
  builder_->end_region(end.name, returned);
  scopes_.pop_back();
  return made;
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
  for (const RegionId region : op.op().regions) {
    // The condition answers one truth value, the body the next state.
    const bool is_condition = regions.empty();
    regions.push_back(partition_region(op, region, types, tilings,
                                       is_condition ? std::vector<Tiling>(1) : tilings));
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
    regions.push_back(partition_region(op, region, {}, {}, tilings));
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
  DeviceGroups groups;
  DeviceMesh mesh = without_axes(scopes_.back().mesh, manual, groups);
  push_scope(std::move(mesh), std::make_unique<Context>(*builder_, context().to_program(groups)));
  for (std::size_t i = 0; i < body.arguments.size(); ++i) {
    // Seen from inside, the manual axes are gone from the tiling.
    const ValueId argument = body.arguments[i];
    const Shape& shape = function_.type_of(argument).dims;
    const Tiling tiling = spmd::tiling_of(scopes_.back().mesh, ins.at(i), shape.size(), place);
    values_[at(argument)] = {operands[i], shape, tiling, &context()};
  }
  visit(body);
  const Op& end = function_.op(body.ops.back());
  builder_->set_origin(op.op().line, body.owner);
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
    set_result(op, i, value);
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

}  // namespace shardsim::spmd
