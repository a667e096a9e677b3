// Slices at computed places. The dimensions that are sliced are whole on every device, unless an
// update is known to lie within one tile.
#include <charconv>
#include <string>

#include "base/index.hpp"
#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Attribute;

std::optional<std::int64_t> constant_index(const OpView& op, std::size_t operand) {
  const Op* made = op.function().definition(op.op().operands[operand]);
  if (made == nullptr || made->name.find("constant") == std::string::npos) return {};
  const Attribute* value = find(made->attributes, "value");
  if (value == nullptr) return {};
  if (value->kind == Attribute::Kind::integer) return value->integer;
  std::int64_t number = 0;
  const char* end = value->text.data() + value->text.size();
  const auto read = std::from_chars(value->text.data(), end, number);
  if (read.ptr != end || read.ec != std::errc()) return {};
  return number;
}

// Where the slice begins, as every device knows it; 0 in dimensions that are not sliced.
std::vector<ValueId> start_indices(Partitioner& p, const OpView& op, std::size_t first,
                                   const Shape& whole, const Shape& slice) {
  std::vector<ValueId> result;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Sharded index = p.operand(op, first + i);
    result.push_back(slice[i] == whole[i] ? p.builder().zero(p.builder().type(index.value))
                                          : replicate(index).value);
  }
  return result;
}

// Every tile of the operand holds all of the update or nothing of it.
bool lies_in_one_tile(const OpView& op, const Dims& split, const Tiling& tiling) {
  const Shape& whole = op.operand(0);
  const Shape& update = op.operand(1);
  for (const std::int64_t dim : split) {
    if (update[at(dim)] == 1) continue;
    const auto start = constant_index(op, at(dim) + 2);
    if (!start) return false;
    const std::int64_t tile = ceil_div(whole[at(dim)], tiling.tiles(dim));
    if (*start / tile != (*start + update[at(dim)] - 1) / tile) return false;
  }
  return true;
}

// The device that has the place writes, all others keep what they have.
void update_one_tile(Partitioner& p, const OpView& op, std::vector<ValueId> starts,
                     const Dims& sliced, const Dims& split) {
  Builder& builder = p.builder();
  const Tiling tiling = p.tiling_of_result(op, 0);
  const Sharded operand = reshard(p.operand(op, 0), tiling);
  const Sharded update = reshard(p.operand(op, 1), replicate_dims(tiling, sliced));
  const std::vector<ValueId> offsets = tile_offsets(p.context(), operand.shape, tiling);
  ValueId is_here = -1;
  for (const std::int64_t dim : split) {
    ValueId& start = starts[at(dim)];
    const TensorType& type = builder.type(start);
    const ValueId offset = builder.convert(offsets[at(dim)], type);
    const ValueId local = builder.binary("stablehlo.subtract", start, offset);
    const std::int64_t tile = builder.shape(operand.value)[at(dim)];
    const ValueId inside =
        builder.binary("stablehlo.and", builder.compare("GE", local, builder.zero(type)),
                       builder.compare("LT", local, builder.constant(std::to_string(tile), type)));
    start = builder.select(inside, local, builder.zero(type));
    is_here = is_here < 0 ? inside : builder.binary("stablehlo.and", is_here, inside);
  }
  const ValueId updated = builder.dynamic_update_slice(operand.value, update.value, starts);
  const ValueId mask = builder.broadcast_scalar(is_here, builder.shape(updated));
  p.set_result(op, 0,
               {builder.select(mask, updated, operand.value), operand.shape, tiling, &p.context()});
}

}  // namespace

void partition_dynamic_slice(Partitioner& p, const OpView& op) {
  const Tiling wanted = p.tiling_of_result(op, 0);
  const Shape& whole = op.operand(0);
  const Shape& slice = op.result(0);
  for (std::size_t i = 0; i < slice.size(); ++i) {
    if (wanted.tiles(static_cast<std::int64_t>(i)) != 1 && slice[i] != whole[i]) {
      return p.replicated(op);
    }
  }
  if (wanted.is_replicated()) return p.replicated(op);
  const Sharded operand = reshard(p.operand(op, 0), wanted);
  const Shape local = local_result(op, 0, wanted).dims;
  const ValueId made =
      p.builder().dynamic_slice(operand.value, start_indices(p, op, 1, whole, slice), local);
  p.set_result(op, 0, {made, slice, wanted, &p.context()});
}

void partition_dynamic_update_slice(Partitioner& p, const OpView& op) {
  const Tiling wanted = p.tiling_of_result(op, 0);
  if (wanted.is_replicated()) return p.replicated(op);
  const Shape& whole = op.operand(0);
  const std::vector<ValueId> starts = start_indices(p, op, 2, whole, op.operand(1));
  Dims sliced;
  Dims split;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (op.operand(1)[i] == whole[i]) continue;
    sliced.push_back(dim);
    if (wanted.tiles(dim) != 1) split.push_back(dim);
  }
  if (!split.empty() && lies_in_one_tile(op, split, wanted)) {
    return update_one_tile(p, op, starts, sliced, split);
  }
  const Sharded operand = p.operand(op, 0);
  const Tiling& finer = operand.tiling.tile_count() > wanted.tile_count() ? operand.tiling : wanted;
  const Tiling tiling = replicate_dims(finer, sliced);
  const Sharded base = reshard(operand, tiling);
  const Sharded update = reshard(p.operand(op, 1), tiling);
  const ValueId made = p.builder().dynamic_update_slice(base.value, update.value, starts);
  p.set_result(op, 0, reshard({made, whole, tiling, &p.context()}, wanted));
}

}  // namespace shardsim::spmd
