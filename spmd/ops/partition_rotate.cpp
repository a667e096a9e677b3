#include <algorithm>
#include <string>

#include "base/index.hpp"
#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
namespace {

// What every tile of the rotated dimension is made of: parts of tiles that lie to the left, round
// and round. Tiles that are nothing but padding take no part.
ValueId rotate_padded(const Sharded& input, std::int64_t dim, std::int64_t amount) {
  Context& context = *input.context;
  Builder& builder = context.builder();
  const Shape local = builder.shape(input.value);
  const std::int64_t tile = local[at(dim)];
  const std::int64_t taking_part = ceil_div(input.shape[at(dim)], tile);
  std::vector<ValueId> parts;
  for (std::int64_t done = 0; done < tile;) {
    const std::int64_t distance = ceil_div(amount - done, tile);
    const std::int64_t start = distance * tile - amount + done;
    const std::int64_t size = std::min(tile - start, tile - done);
    done += size;
    ValueId part = input.value;
    if (size != tile) {
      Shape starts(local.size(), 0);
      Shape limits = local;
      starts[at(dim)] = start;
      limits[at(dim)] = start + size;
      part = builder.slice(part, starts, limits, Shape(local.size(), 1));
    }
    if (distance % taking_part != 0) {
      std::vector<std::pair<int, int>> pairs;
      input.tiling.each([&](const Dims& index, int device) {
        if (index[at(dim)] >= taking_part) return;
        Dims target = index;
        target[at(dim)] = (target[at(dim)] + distance) % taking_part;
        pairs.emplace_back(device, input.tiling.device_at(target));
      });
      part = collective_permute(context, part, pairs);
    }
    parts.push_back(part);
  }
  return parts.size() == 1 ? parts.front() : builder.concatenate(parts, dim);
}

}  // namespace

// A dimension whose last tile is padded is rotated twice: the elements that come over the end have
// the padding in front of them.
void partition_rotate(Partitioner& p, const OpView& op) {
  Builder& builder = p.builder();
  const Tiling tiling = p.tiling_of_result(op, 0);
  const Sharded input = reshard(p.operand(op, 0), tiling);
  const std::int64_t dim = op.integer({"dim"}, 0);
  const std::int64_t size = input.shape[at(dim)];
  const std::int64_t amount = op.integer({"amount"}, 0) % size;
  if (amount == 0) return p.set_result(op, 0, input);
  const Shape local = builder.shape(input.value);
  const std::int64_t tile = local[at(dim)];
  const std::int64_t padded = ceil_div(size, tile) * tile;
  Sharded result = input;
  result.value = rotate_padded(input, dim, amount);
  if (padded != size) {
    const ValueId wrapped = rotate_padded(input, dim, (amount + padded - size) % padded);
    const TensorType scalar{true, {}, "i32", DType::i32, ""};
    const ValueId offset = tile_offsets(p.context(), input.shape, tiling, {dim})[at(dim)];
    const ValueId limit = builder.binary("stablehlo.subtract",
                                         builder.constant(std::to_string(amount), scalar), offset);
    const ValueId is_wrapped =
        builder.compare("LT", builder.iota({true, local, "i32", DType::i32, ""}, dim),
                        builder.broadcast_scalar(limit, local));
    result.value = builder.select(is_wrapped, wrapped, result.value);
  }
  p.set_result(op, 0, result);
}

}  // namespace shardsim::spmd
