#include <algorithm>

#include "spmd/partitioner.hpp"
#include "spmd/tiling/tiling_reshape.hpp"
#include "stablehlo/dimension_numbers.hpp"

namespace shardsim::spmd {

// The tiles of the sorted dimension move to another one, or become replicas.
void partition_sort(Partitioner& p, const OpView& op) {
  const std::size_t count = op.op().operands.size();
  const Tiling wanted = p.tiling_of_result(op, 0);
  bool alike = true;
  for (std::size_t i = 1; i < count; ++i) alike = alike && p.tiling_of_result(op, i) == wanted;
  if (!alike || wanted.is_replicated()) return p.replicated(op);
  const Shape& shape = op.operand(0);
  const std::int64_t dim = stablehlo::sorted_dim(op);
  Tiling tiling = wanted;
  if (wanted.tiles(dim) != 1) {
    if (shape.size() == 1) return p.replicated(op);
    const auto target = dim_to_move_tiles_to(shape, wanted, dim, [](std::int64_t) { return true; });
    tiling = target ? move_tiles(wanted, dim, *target) : replicate_dims(wanted, {dim});
  }
  std::vector<ValueId> operands;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < count; ++i) {
    operands.push_back(reshard(p.operand(op, i), tiling).value);
    types.push_back(p.builder().type(operands.back()));
  }
  const std::vector<ValueId> made = p.clone(op, operands, types);
  for (std::size_t i = 0; i < count; ++i) {
    p.set_result(op, i, reshard({made[i], op.result(i), tiling, &p.context()}, wanted));
  }
}

// Of the calls with a known meaning those that move a tensor between memories; all others run whole
// on every device.
void partition_custom_call(Partitioner& p, const OpView& op) {
  const stablehlo::Attribute* target = op.attribute({"call_target_name", "callee"});
  const bool moves = target != nullptr && op.op().operands.size() == 1 &&
                     op.op().results.size() == 1 &&
                     target->text.find("annotate_device_placement") != std::string::npos;
  if (!moves) return p.replicated(op);
  const Sharded operand = p.operand(op, 0);
  const TensorType type = p.builder().type(operand.value);
  const ValueId made = p.clone(op, {operand.value}, {type}).front();
  p.set_result(
      op, 0,
      reshard({made, operand.shape, operand.tiling, &p.context()}, p.tiling_of_result(op, 0)));
}

}  // namespace shardsim::spmd
