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

// Operand and indices split alike over dimensions that they share.
struct SharedTilings {
  Tiling operand;
  Tiling indices;
};

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

// The output as the indices suggest it.
Tiling output_from_indices(const IndexedAccess& access, const Tiling& indices) {
  const SharedDims dims = access.connected();
  return tiling_along(indices, dims.indices, dims.output, access.output_rank());
}

// The output as the operand's whole slices suggest it.
std::optional<Tiling> output_from_operand(const IndexedTensors& given, const Tiling& tiling) {
  const SharedDims whole = given.access.whole_slices(given.operand.shape, given.slices);
  const Tiling output =
      tiling_along(tiling, whole.operand, whole.output, given.access.output_rank());
  if (output.is_replicated()) return {};
  return output;
}

// Groups of a tensor that is not split over them: `split` is, in `dims`.
struct Replicas {
  const Tiling& split;
  const Dims& dims;
  const GroupedTiling& groups;

  [[nodiscard]] GroupedTiling of(const Tiling& tiling, std::size_t rank,
                                 const Dims& may_replicate) const {
    const auto devices = static_cast<std::int64_t>(split.devices().size());
    return align_groups(
        group_replicas(tiling, tiles_over(split, dims), devices, rank, may_replicate), groups);
  }
};

}  // namespace

Tiling indices_from_output(const IndexedAccess& access, const Tiling& output) {
  const SharedDims dims = access.connected();
  return tiling_along(output, dims.output, dims.indices, access.indices_rank());
}

std::optional<SharedSplit> split_shared(const IndexedTensors& given, const SharedDims& shared) {
  if (shared.operand.empty()) return {};
  const auto tilings = split_alike(given.operand.tiling, given.indices, shared, given.access);
  if (!tilings) return {};
  Tiling output = output_from_indices(given.access, tilings->indices);
  const Tiling rest = replicate_dims(tilings->operand, shared.operand);
  if (const auto whole = output_from_operand(given, rest)) {
    output = refined_if_possible(output, *whole);
  }
  const GroupedTiling indices = group_by(tilings->indices, shared.indices);
  return SharedSplit{tilings->operand,
                     tilings->indices,
                     output,
                     {align_groups(group_by(tilings->operand, shared.operand), indices), indices,
                      align_groups(group_by(output, shared.output), indices), given.slices}};
}

std::optional<IndexedGroups> split_whole_slices(const IndexedTensors& given) {
  const IndexedAccess& access = given.access;
  const Tiling& operand = given.operand.tiling;
  if (operand.is_replicated()) return {};
  const auto output = output_from_operand(given, operand);
  if (!output) return {};
  const Dims dims = access.whole_slices(given.slices).operand;
  Dims output_dims;
  for (std::size_t i = 0; i < output->tiles().size(); ++i) {
    if (output->tiles()[i] != 1) output_dims.push_back(static_cast<std::int64_t>(i));
  }
  IndexedGroups groups;
  groups.slices = given.slices;
  const Shape& local = given.operand.context->builder().shape(given.operand.value);
  for (const std::int64_t dim : dims) groups.slices[at(dim)] = local[at(dim)];
  groups.output = group_by(refined_if_possible(*output, given.output), output_dims);
  groups.operand = align_groups(group_by(operand, dims), groups.output);
  groups.indices = Replicas{operand, dims, groups.output}.of(given.indices, access.indices_rank(),
                                                             access.indices_by_priority());
  return groups;
}

IndexedGroups split_lookups(const IndexedTensors& given, const Dims& dims) {
  const IndexedAccess& access = given.access;
  IndexedGroups groups;
  groups.slices = given.slices;
  groups.operand = group_by(given.operand.tiling, dims);
  const Replicas replicas{given.operand.tiling, dims, groups.operand};
  const auto of_indices = [&](const Tiling& tiling) {
    return replicas.of(tiling, access.indices_rank(), access.indices_by_priority());
  };
  const auto of_output = [&](const Tiling& tiling) {
    return replicas.of(tiling, access.output_rank(), access.output_by_priority(given.slices));
  };
  groups.indices = of_indices(given.indices);
  groups.output = of_output(given.output);
  // Where only one of indices and output is split, the other follows.
  const bool indices_whole = groups.indices.tiling.is_replicated();
  const bool output_whole = groups.output.tiling.is_replicated();
  if (!indices_whole && output_whole) {
    groups.output = of_output(output_from_indices(access, given.indices));
  } else if (indices_whole && !output_whole) {
    groups.indices = of_indices(indices_from_output(access, given.output));
  }
  return groups;
}

Tiling refined_indices(const IndexedTensors& given) {
  const SharedDims passing = given.access.passing();
  return refined_if_possible(
      given.indices,
      tiling_along(given.output, passing.output, passing.indices, given.access.indices_rank()));
}

std::optional<IndexedGroups> split_indices(const IndexedTensors& given) {
  const IndexedAccess& access = given.access;
  const SharedDims passing = access.passing();
  const Tiling output =
      tiling_along(given.indices, passing.indices, passing.output, access.output_rank());
  if (output.is_replicated()) return {};
  const Tiling& operand = given.operand.tiling;
  IndexedGroups groups;
  groups.slices = given.slices;
  groups.output = group_by(refined_if_possible(output, given.output), passing.output);
  groups.indices = align_groups(group_by(given.indices, passing.indices), groups.output);
  groups.operand = Replicas{given.indices, passing.indices, groups.output}.of(
      operand, access.operand_rank(), access.operand_by_priority(operand, given.slices));
  return groups;
}

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
