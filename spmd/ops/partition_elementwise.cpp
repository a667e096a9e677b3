#include <algorithm>

#include "base/index.hpp"
#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
namespace {

TensorType local_type(TensorType type, const Tiling& tiling) {
  type.dims = shard_shape(type.dims, tiling);
  return type;
}

const TensorType& result_type(const OpView& op, std::size_t index) {
  return op.function().type_of(op.op().results[index]);
}

}  // namespace

// Where all operands lie alike, the op runs on them as they lie; otherwise they are brought to the
// tiling of the result first. Scalars among tensors (select, clamp) are on every device.
void partition_elementwise(Partitioner& p, const OpView& op) {
  const std::size_t count = op.op().operands.size();
  std::vector<Sharded> operands;
  for (std::size_t i = 0; i < count; ++i) operands.push_back(p.operand(op, i));
  const Tiling wanted = p.tiling_of_result(op, 0);
  const TensorType& type = result_type(op, 0);
  std::vector<const Sharded*> tensors;
  for (const Sharded& operand : operands) {
    if (operand.shape.size() == type.dims.size()) tensors.push_back(&operand);
  }
  const bool alike =
      tensors.size() > 1 && std::all_of(tensors.begin(), tensors.end(), [&](const Sharded* tensor) {
        return tensor->tiling == tensors.front()->tiling;
      });
  const Tiling tiling = alike ? tensors.front()->tiling : wanted;
  std::vector<ValueId> values;
  for (const Sharded& operand : operands) {
    const bool scalar = operand.shape.size() != type.dims.size();
    values.push_back(scalar ? operand.value : reshard(operand, tiling).value);
  }
  const ValueId made = p.clone(op, values, {local_type(type, tiling)}).front();
  p.set_result(op, 0, reshard({made, type.dims, tiling, &p.context()}, wanted));
}

void partition_broadcast(Partitioner& p, const OpView& op) {
  const Tiling wanted = p.tiling_of_result(op, 0);
  const Sharded operand = p.operand(op, 0);
  const TensorType& type = result_type(op, 0);
  const std::vector<std::int64_t> targets = op.integers({"dims", "broadcast_dimensions"});
  // What the operand must look like: dimensions that the op makes, or repeats, do not split it.
  Dims made;
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    if (!holds(targets, static_cast<std::int64_t>(i))) made.push_back(static_cast<std::int64_t>(i));
  }
  Dims repeated;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (operand.shape[i] == 1 && type.dims[at(targets[i])] != 1) {
      repeated.push_back(targets[i]);
    }
  }
  Dims whole = made;
  whole.insert(whole.end(), repeated.begin(), repeated.end());
  Tiling input = remove_dims(replicate_dims(wanted, whole), made);
  if (!input.is_replicated()) {
    Dims order;  // the operand's dimensions among those that are left, in the operand's order
    Dims left = targets;
    std::sort(left.begin(), left.end());
    for (const std::int64_t target : targets) {
      order.push_back(std::find(left.begin(), left.end(), target) - left.begin());
    }
    input = transpose(input, order);
  }
  const ValueId value = reshard(operand, input).value;
  const ValueId result = p.clone(op, {value}, {local_type(type, wanted)}).front();
  p.set_result(op, 0, {result, type.dims, wanted, &p.context()});
}

void partition_transpose(Partitioner& p, const OpView& op) {
  const Tiling wanted = p.tiling_of_result(op, 0);
  const std::vector<std::int64_t> order = op.integers({"dims", "permutation"});
  Dims inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse[at(order[i])] = static_cast<std::int64_t>(i);
  }
  const TensorType& type = result_type(op, 0);
  const ValueId operand = reshard(p.operand(op, 0), transpose(wanted, inverse)).value;
  const ValueId result = p.clone(op, {operand}, {local_type(type, wanted)}).front();
  p.set_result(op, 0, {result, type.dims, wanted, &p.context()});
}

void partition_iota(Partitioner& p, const OpView& op) {
  const Tiling wanted = p.tiling_of_result(op, 0);
  const TensorType& type = result_type(op, 0);
  if (wanted.is_replicated()) return p.replicated(op);
  Builder& builder = p.builder();
  const std::int64_t dim = op.integer({"dim", "iota_dimension"}, 0);
  const TensorType local = local_type(type, wanted);
  ValueId iota = p.clone(op, {}, {local}).front();
  if (wanted.tiles(dim) > 1) {
    const std::vector<ValueId> starts = tile_offsets(p.context(), type.dims, wanted);
    ValueId start = starts[at(dim)];
    TensorType scalar = type;
    scalar.dims.clear();
    if (scalar.dtype != DType::i32) start = builder.convert(start, scalar);
    iota = builder.binary("stablehlo.add", iota, builder.broadcast_scalar(start, local.dims));
  }
  p.set_result(op, 0, {iota, type.dims, wanted, &p.context()});
}

}  // namespace shardsim::spmd
