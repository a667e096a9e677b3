#include "spmd/ops/indexed_groups.hpp"

#include "base/index.hpp"
#include "spmd/tiling/tiling_reshape.hpp"

namespace shardsim::spmd {
namespace {

std::int64_t tiles_over(const Tiling& tiling, const Dims& dims) {
  std::int64_t tiles = 1;
  for (const std::int64_t dim : dims) tiles *= tiling.tiles(dim);
  return tiles;
}

// `tiling` with the tiles of `wanted` in `dims`, taken from its replicas.
std::optional<Tiling> split_replicas_like(const Tiling& tiling, const Dims& dims,
                                          const Tiling& wanted, const Dims& wanted_dims) {
  if (!tiling.is_partial()) return {};
  Shape tiles = tiling.tiles();
  std::int64_t replicas = tiling.replicas();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t have = tiling.tiles(dims[i]);
    const std::int64_t want = wanted.tiles(wanted_dims[i]);
    if (want % have != 0 || replicas % (want / have) != 0) return {};
    tiles[at(dims[i])] *= want / have;
    replicas /= want / have;
  }
  return align_dims(Tiling::tiled(std::move(tiles), tiling.devices()), dims, wanted, wanted_dims);
}

}  // namespace

Shape group_shape(const GroupedTiling& grouped, const Shape& shape) {
  Shape result = shape;
  for (std::size_t i = 0; i < grouped.dims.size(); ++i) {
    if (at(grouped.dims[i]) >= shape.size()) continue;
    std::int64_t& size = result[at(grouped.dims[i])];
    size = ceil_div(size, grouped.sizes[i]);
  }
  return result;
}

Sharded within_groups(Sharded& value, const GroupedTiling& grouped) {
  value = reshard(value, ungroup(grouped));
  return {value.value, group_shape(grouped, value.shape), grouped.tiling,
          &value.context->grouped(grouped.groups)};
}

std::optional<SharedTilings> split_alike(const Tiling& operand, const Tiling& indices,
                                         const SharedDims& shared, const IndexedAccess& access) {
  if (shared.indices.size() != shared.operand.size()) return {};
  const std::int64_t indices_tiles = tiles_over(indices, shared.indices);
  const std::int64_t operand_tiles = tiles_over(operand, shared.operand);
  if (indices_tiles == 1 && operand_tiles == 1) return {};
  SharedTilings result{operand, indices};
  if (indices.is_replicated()) {
    result.indices = tiling_along(operand, shared.operand, shared.indices, access.indices_rank());
    return result;
  }
  if (operand.is_replicated()) {
    result.operand = tiling_along(indices, shared.indices, shared.operand, access.operand_rank());
    return result;
  }
  if (indices_tiles < operand_tiles) {
    const auto split = split_replicas_like(indices, shared.indices, operand, shared.operand);
    if (!split) return {};
    result.indices = *split;
  } else if (operand_tiles < indices_tiles) {
    const auto split = split_replicas_like(operand, shared.operand, indices, shared.indices);
    if (!split) return {};
    result.operand = *split;
  }
  Shape tiles = result.operand.tiles();
  for (std::size_t i = 0; i < shared.indices.size(); ++i) {
    tiles[at(shared.operand[i])] = result.indices.tiles(shared.indices[i]);
  }
  result.operand = align_dims(Tiling::tiled(std::move(tiles), result.operand.devices()),
                              shared.operand, result.indices, shared.indices);
  return result;
}

Tiling output_from_indices(const IndexedAccess& access, const Tiling& indices) {
  const SharedDims dims = access.connected();
  return tiling_along(indices, dims.indices, dims.output, access.output_rank());
}

Tiling indices_from_output(const IndexedAccess& access, const Tiling& output) {
  const SharedDims dims = access.connected();
  return tiling_along(output, dims.output, dims.indices, access.indices_rank());
}

std::optional<Tiling> output_from_operand(const IndexedAccess& access, const Sharded& operand,
                                          const Tiling& tiling, const Shape& slices) {
  const SharedDims whole = access.whole_slices(operand.shape, slices);
  const Tiling output = tiling_along(tiling, whole.operand, whole.output, access.output_rank());
  if (output.is_replicated()) return {};
  return output;
}

ValueId along_indices(const IndexedAccess& access, const Sharded& indices,
                      const std::vector<ValueId>& scalars) {
  Builder& builder = indices.context->builder();
  TensorType type = builder.type(indices.value);
  const Shape shape = type.dims;
  type.dims.clear();
  std::vector<ValueId> entries;
  for (ValueId scalar : scalars) {
    if (builder.type(scalar) != type) scalar = builder.convert(scalar, type);
    entries.push_back(access.has_index_vector() ? builder.reshape(scalar, {1}) : scalar);
  }
  if (!access.has_index_vector()) return builder.broadcast_scalar(entries.front(), shape);
  const ValueId vector = entries.size() == 1 ? entries.front() : builder.concatenate(entries, 0);
  type.dims = shape;
  return builder.add("stablehlo.broadcast_in_dim", {vector}, type,
                     {{"dims", integers_attribute({access.index_vector_dim()})}});
}

std::vector<ValueId> first_indices(const IndexedAccess& access, const Sharded& operand,
                                   const Dims& dims) {
  const std::vector<ValueId> offsets =
      tile_offsets(*operand.context, operand.shape, operand.tiling, dims);
  std::vector<ValueId> result;
  for (const std::int64_t dim : access.index_map()) result.push_back(offsets[at(dim)]);
  return result;
}

Sharded relative_to_tiles(const IndexedAccess& access, const Sharded& indices,
                          const Sharded& operand, const Dims& dims) {
  Builder& builder = indices.context->builder();
  Sharded result = indices;
  const ValueId first = along_indices(access, indices, first_indices(access, operand, dims));
  result.value = builder.binary("stablehlo.subtract", indices.value, first);
  return result;
}

}  // namespace shardsim::spmd
