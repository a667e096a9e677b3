#include "base/index.hpp"
#include "spmd/ops/partition_dot.hpp"
#include "spmd/tiling/tiling_match.hpp"

namespace shardsim::spmd {
namespace {

// Operands whose devices are grouped by contracting dimensions: `tiling` as a whole, and within.
struct SummedOperand {
  Sharded value;
  GroupedTiling grouped;
  Tiling tiling;
};

struct Operands {
  SummedOperand lhs;
  SummedOperand rhs;
};

Tiling split_like(const Tiling& tiling, const Dims& dims, const Tiling& model,
                  const Dims& model_dims) {
  Shape extents = tiling.extents();
  for (std::size_t i = 0; i < dims.size(); ++i) extents[at(dims[i])] = model.tiles(model_dims[i]);
  return with_extents(tiling, extents);
}

// Regroups `other` as `kept` is; false where that would change how it lies and must not.
bool follow(SummedOperand& other, const Dims& other_dims, SummedOperand& kept,
            const Dims& kept_dims, bool keep_groups) {
  kept.tiling = kept.value.tiling;
  kept.grouped = group_by(kept.tiling, kept_dims);
  other.grouped = align_groups(
      group_by(split_like(other.value.tiling, other_dims, kept.tiling, kept_dims), other_dims),
      kept.grouped);
  other.tiling = ungroup(other.grouped);
  if (keep_groups && other.value.tiling != other.tiling) return false;
  other.value = reshard(other.value, other.tiling);
  return true;
}

// The operand with more bytes on a device keeps its groups.
std::optional<Operands> align_operands(const Sharded& lhs, const Sharded& rhs, const Dims& lhs_dims,
                                       const Dims& rhs_dims, bool keep_groups) {
  Operands result{{lhs, {}, {}}, {rhs, {}, {}}};
  const bool aligned = local_bytes(lhs) > local_bytes(rhs)
                           ? follow(result.rhs, rhs_dims, result.lhs, lhs_dims, keep_groups)
                           : follow(result.lhs, lhs_dims, result.rhs, rhs_dims, keep_groups);
  if (!aligned) return std::nullopt;
  const auto pad_over = [](const Sharded& value, const Dims& dims) {
    Dims others = iota_dims(value.shape.size());
    std::erase_if(others, [&](std::int64_t dim) { return holds(dims, dim); });
    return pad_with_zero(value, {}, others);
  };
  result.lhs.value = pad_over(result.lhs.value, lhs_dims);
  result.rhs.value = pad_over(result.rhs.value, rhs_dims);
  return result;
}

// How the groups share the result: each keeps a part of the sum, or all of it.
struct ResultGroups {
  Tiling inner;              // within a group
  Tiling outer;              // of what all groups together have
  Dims sliced;               // dimensions of the sum that are cut into one part per group
  bool by_replicas = false;  // the replicas of the result tell groups apart too
};

// When only one operand is split further and the result is split finer than that: what the operand
// gives, which is then only sliced.
Tiling coarser_result(const Dot& dot, const Operands& operands, const DotTarget& target) {
  const bool lhs_whole = operands.lhs.grouped.tiling.is_replicated();
  if (lhs_whole == operands.rhs.grouped.tiling.is_replicated()) return target.tiling;
  const DotMaps maps = maps_of(dot.dims);
  const DotTensor split = lhs_whole ? DotTensor::rhs : DotTensor::lhs;
  const Tiling tiling = replicate_dims(lhs_whole ? operands.rhs.tiling : operands.lhs.tiling,
                                       dims_in(dot.dims.contracting, split));
  const std::optional<Tiling> given =
      lhs_whole ? match_dims(tiling, maps.rhs_to_output, maps.output_to_rhs)
                : match_dims(tiling, maps.lhs_to_output, maps.output_to_lhs);
  return given && is_finer_or_equal(target.shape, target.tiling, *given) ? *given : target.tiling;
}

// Dimensions of the result that are split into as many tiles as there are groups.
Dims dims_of_count(const Dot& dot, const DotTiles& tiles, std::int64_t groups) {
  if (tiles.output_lhs_free == groups) return dims_in(dot.dims.lhs_free, DotTensor::output);
  if (tiles.output_rhs_free == groups) return dims_in(dot.dims.rhs_free, DotTensor::output);
  if (tiles.output_batch == groups) return dims_in(dot.dims.batch, DotTensor::output);
  return {};
}

ResultGroups group_result(const Dot& dot, const Operands& operands, const DotTarget& target,
                          const DotTiles& tiles) {
  const GroupedTiling& reference = operands.lhs.grouped;
  const auto groups = static_cast<std::int64_t>(reference.groups.size());
  const auto replicas_divide = [&](const Tiling& tiling) {
    return tiling.is_partial() && tiling.replicas() % groups == 0;
  };
  Tiling tiling = target.tiling;
  if (!tiling.is_replicated() && !replicas_divide(tiling)) {
    tiling = coarser_result(dot, operands, target);
  }
  const auto rank = static_cast<std::int64_t>(target.shape.size());
  ResultGroups result;
  if (replicas_divide(tiling)) {
    const GroupedTiling grouped = align_groups(group_by(tiling, {rank}, {groups}), reference,
                                               /*ignore_order=*/true);
    result.outer = ungroup(grouped);
    result.inner = grouped.tiling;
  } else if (auto found = dims_of_groups(tiling, reference.groups)) {
    // These are summed over anyway: their order need not be that of the operands.
    result.sliced = std::move(*found);
    result.inner = group_by(tiling, result.sliced).tiling;
    result.outer = tiling;
  } else if (!tiling.is_replicated()) {
    result.sliced = dims_of_count(dot, tiles, groups);
    if (!result.sliced.empty()) {
      const GroupedTiling grouped = align_groups(group_by(tiling, result.sliced), reference);
      result.inner = grouped.tiling;
      result.outer = ungroup(grouped);
    }
  }
  result.by_replicas = holds(result.sliced, rank);
  std::erase(result.sliced, rank);
  return result;
}

// Adds up what the groups have; `context` is that around the groups.
ValueId sum_over_groups(Context& context, ValueId partial, const ResultGroups& result,
                        const SummedOperand& lhs, const Dims& others) {
  if (result.sliced.empty()) return sum_along(context, partial, lhs.tiling, lhs.grouped.dims);
  const ValueId sum = sum_along(context, partial, result.outer, result.sliced);
  // The sum is whole only as far as a group sees it: what is remembered of it must not be found by
  // others, hence a context of its own.
  std::vector<int> all;
  for (int device = 0; device < context.devices(); ++device) all.push_back(device);
  Context aside(context.builder(), context.to_program({all}));
  const Shape shape = context.builder().shape(sum);
  const ValueId slice =
      reshard({sum, shape, Tiling(), &aside}, replicate_dims(result.outer, others)).value;
  if (!result.by_replicas) return slice;
  const auto rank = static_cast<std::int64_t>(shape.size());
  return sum_along(context, slice, result.outer, {rank});
}

ValueId sum_in_groups(const Dot& dot, const Operands& operands, const ResultGroups& result,
                      const DotTarget& target) {
  Context& context = *operands.lhs.value.context;
  Dims others = iota_dims(target.shape.size());
  std::erase_if(others, [&](std::int64_t dim) { return holds(result.sliced, dim); });
  DotTarget inner{target.shape, result.inner};
  if (!result.sliced.empty()) {
    inner.shape = shard_shape(target.shape, replicate_dims(target.tiling, others));
  }
  Dot summing = dot;
  summing.make = [&](const Sharded& lhs, const Sharded& rhs, const Window& window) {
    return sum_over_groups(context, dot.make(lhs, rhs, window), result, operands.lhs, others);
  };
  const ValueId made = partition_dot(summing, within(operands.lhs.value, operands.lhs.grouped),
                                     within(operands.rhs.value, operands.rhs.grouped), inner);
  return reshard({made, target.shape, result.outer, &context}, target.tiling).value;
}

}  // namespace

DotAttempt group_on_contracting(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                                const DotTarget& target, bool keep_groups) {
  const DotTiles tiles = tiles_of(dot.dims, lhs.tiling, rhs.tiling, target.tiling);
  if (tiles.lhs_contracting == 1 || tiles.rhs_contracting == 1) return std::nullopt;
  const auto attempt = [&](const std::vector<DotDim>& dims) -> DotAttempt {
    const std::optional<Operands> operands = align_operands(
        lhs, rhs, dims_in(dims, DotTensor::lhs), dims_in(dims, DotTensor::rhs), keep_groups);
    if (!operands.has_value()) return std::nullopt;
    const ResultGroups result = group_result(dot, *operands, target, tiles);
    return sum_in_groups(dot, *operands, result, target);
  };
  if (tiles.lhs_contracting == tiles.rhs_contracting) {
    if (const auto made = attempt(dot.dims.contracting)) return made;
  }
  std::vector<DotDim> equally_split;
  for (const DotDim& dim : dot.dims.contracting) {
    const std::int64_t split = lhs.tiles(dim.lhs);
    if (split > 1 && split == rhs.tiles(dim.rhs)) equally_split.push_back(dim);
  }
  if (equally_split.empty()) return std::nullopt;
  return attempt(equally_split);
}

}  // namespace shardsim::spmd
