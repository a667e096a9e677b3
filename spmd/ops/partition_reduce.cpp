#include "base/index.hpp"
#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
namespace {

std::string reduction_of(const OpView& op) {
  if (const stablehlo::Attribute* applies = op.attribute({"applies"})) return applies->text;
  const stablehlo::Function& function = op.function();
  for (const stablehlo::RegionId id : op.op().regions) {
    const stablehlo::Region& region = function.regions[at(id)];
    if (region.ops.size() == 2) return function.op(region.ops.front()).name;
  }
  return "region";
}

// The reduction of several inputs at once (an arg-max): every device's partial results are gathered
// along the dimensions that were split, and reduced again.
std::vector<ValueId> reduce_gathered(Partitioner& p, const OpView& op,
                                     const std::vector<ValueId>& partial,
                                     const std::vector<ValueId>& inits, const Sharded& input,
                                     const Dims& reduced) {
  Builder& builder = p.builder();
  Dims kept;
  for (std::size_t i = 0; i < input.tiling.extents().size(); ++i) {
    if (!holds(reduced, static_cast<std::int64_t>(i))) kept.push_back(static_cast<std::int64_t>(i));
  }
  const GroupedTiling grouped = group_by(input.tiling, kept);
  Context& context = input.context->grouped(grouped.groups);
  std::vector<ValueId> operands;
  std::vector<TensorType> types;
  for (const ValueId value : partial) {
    Shape local = builder.shape(input.value);
    Shape whole = local;
    for (const std::int64_t dim : reduced) {
      local[at(dim)] = 1;
      whole[at(dim)] = input.tiles(dim);
    }
    const Sharded seen{builder.reshape(value, local), whole, grouped.tiling, &context};
    operands.push_back(replicate(seen).value);
    types.push_back(builder.type(value));
  }
  operands.insert(operands.end(), inits.begin(), inits.end());
  return p.clone(op, operands, types);
}

}  // namespace

void partition_reduce(Partitioner& p, const OpView& op) {
  const std::size_t count = op.op().operands.size() / 2;
  const Dims reduced = op.integers({"dimensions"});
  std::vector<Sharded> inputs;
  std::vector<ValueId> inits;
  const std::size_t rank = op.operand(0).size();
  Dims kept;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!holds(reduced, static_cast<std::int64_t>(i))) kept.push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < count; ++i) {
    inits.push_back(replicate(p.operand(op, count + i)).value);
    Sharded input = p.operand(op, i);
    if (i > 0) input = reshard(input, inputs.front().tiling);
    inputs.push_back(pad_with(input, inits.back(), {}, kept));
  }
  const Tiling& tiling = inputs.front().tiling;
  std::vector<ValueId> operands;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < count; ++i) {
    operands.push_back(inputs[i].value);
    TensorType type = op.function().type_of(op.op().results[i]);
    type.dims.clear();
    for (const std::int64_t dim : kept) {
      type.dims.push_back(p.builder().shape(inputs[i].value)[at(dim)]);
    }
    types.push_back(std::move(type));
  }
  operands.insert(operands.end(), inits.begin(), inits.end());
  std::vector<ValueId> results = p.clone(op, operands, types);
  bool split = false;
  for (const std::int64_t dim : reduced) split = split || tiling.tiles(dim) > 1;
  if (split && count == 1) {
    results = {all_reduce_along(p.context(), results.front(), tiling, reduced, reduction_of(op))};
  } else if (split) {
    results = reduce_gathered(p, op, results, inits, inputs.front(), reduced);
  }
  const Tiling after = remove_dims(replicate_dims(tiling, reduced), reduced);
  for (std::size_t i = 0; i < count; ++i) {
    const Shape& shape = op.result(i);
    const Sharded value{results[i], shape, after, &p.context()};
    p.set_result(op, i, reshard(value, p.tiling_of_result(op, i)));
  }
}

}  // namespace shardsim::spmd
