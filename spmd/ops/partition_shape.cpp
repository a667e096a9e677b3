#include <charconv>

#include "base/index.hpp"
#include "spmd/ops/windowed.hpp"
#include "spmd/partitioner.hpp"
#include "spmd/tiling/tiling_reshape.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Attribute;

// A constant that is written as zero.
bool is_zero(const OpView& op, std::size_t operand) {
  const Op* made = op.function().definition(op.op().operands[operand]);
  if (made == nullptr || made->name.find("constant") == std::string::npos) return false;
  const Attribute* value = find(made->attributes, "value");
  if (value == nullptr) return false;
  if (value->text == "false") return true;
  double number = 1;
  const char* end = value->text.data() + value->text.size();
  const auto read = std::from_chars(value->text.data(), end, number);
  return read.ptr == end && read.ec == std::errc() && number == 0;
}

}  // namespace

// Where the operand has more tiles than the result, it is sliced as it lies: less is moved after.
void partition_slice(Partitioner& p, const OpView& op) {
  const SliceBounds bounds{op.integers({"start_indices"}), op.integers({"limit_indices"}),
                           op.integers({"strides"})};
  const Sharded operand = p.operand(op, 0);
  const Tiling wanted = p.tiling_of_result(op, 0);
  std::optional<Sharded> result;
  if (operand.tiling.tile_count() > wanted.tile_count()) {
    result = slice_tiles(operand, bounds, operand.tiling);
  }
  if (!result) result = slice_tiles(operand, bounds, wanted);
  if (!result) return p.replicated(op);
  p.set_result(op, 0, reshard(*result, wanted));
}

void partition_pad(Partitioner& p, const OpView& op) {
  const PaddingSizes sizes{op.integers({"low", "edge_padding_low"}),
                           op.integers({"high", "edge_padding_high"}),
                           op.integers({"interior", "interior_padding"})};
  const ValueId padding = replicate(p.operand(op, 1)).value;
  const auto result =
      pad_tiles(p.operand(op, 0), sizes, padding, is_zero(op, 1), p.tiling_of_result(op, 0));
  if (!result) return p.replicated(op);
  p.set_result(op, 0, *result);
}

// The tiles of the dimension that grows move to another one, if there is one that they divide.
void partition_concatenate(Partitioner& p, const OpView& op) {
  const Tiling wanted = p.tiling_of_result(op, 0);
  if (wanted.is_replicated()) return p.replicated(op);
  const std::int64_t dim = op.integer({"dim", "dimension"}, 0);
  const Shape& shape = op.result(0);
  const auto target =
      dim_to_move_tiles_to(shape, wanted, dim, [&](std::int64_t other) { return other != dim; });
  const Tiling tiling = target ? move_tiles(wanted, dim, *target) : replicate_dims(wanted, {dim});
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < op.op().operands.size(); ++i) {
    operands.push_back(reshard(p.operand(op, i), tiling).value);
  }
  const ValueId made = p.clone(op, operands, {local_result(op, 0, tiling)}).front();
  p.set_result(op, 0, reshard({made, shape, tiling, &p.context()}, wanted));
}

// Tiles change places; padding at the end comes to lie in front.
void partition_reverse(Partitioner& p, const OpView& op) {
  const Tiling wanted = p.tiling_of_result(op, 0);
  if (wanted.is_replicated()) return p.replicated(op);
  const Dims dims = op.integers({"dims", "dimensions"});
  const Sharded operand = reshard(p.operand(op, 0), reverse_tiling(wanted, dims));
  Window window(operand.shape.size());
  for (const std::int64_t dim : dims) {
    const std::int64_t size = operand.shape[at(dim)];
    window[at(dim)].low = round_up(size, operand.tiles(dim)) - size;
  }
  const ValueId zero = p.builder().zero(p.builder().type(operand.value));
  const auto input = reshard_for_window(operand, window, operand.tiling, zero, Masking::none);
  if (!input) return p.replicated(op);
  const ValueId made = p.clone(op, {input->value}, {local_result(op, 0, wanted)}).front();
  p.set_result(op, 0, {made, op.result(0), wanted, &p.context()});
}

}  // namespace shardsim::spmd
