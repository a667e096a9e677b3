#include <cassert>

#include "base/index.hpp"
#include "spmd/ops/partition_dot.hpp"
#include "spmd/tiling/tiling_match.hpp"

namespace shardsim::spmd {
namespace {

// --- batch -----------------------------------------------------------------------------------

// An operand for the groups that the batch dimensions of the result make.
struct BatchOperand {
  const DotDims& dims;
  DotTensor which;
  Sharded value;
  std::int64_t contracting_tiles;
  std::int64_t other_contracting_tiles;
  std::int64_t free_tiles;

  // The tiles that it has with the batch split as in the result; what does not fit on the devices
  // is given up: replicas first, then free dimensions, then contracting ones.
  [[nodiscard]] std::optional<Shape> extents_for(const Tiling& result) const {
    Shape extents = value.tiling.extents();
    for (const DotDim& dim : dims.batch) {
      const std::int64_t own = which == DotTensor::lhs ? dim.lhs : dim.rhs;
      extents[at(own)] = result.tiles(dim.output);
    }
    const auto devices = static_cast<std::int64_t>(value.tiling.devices().size());
    if (product(extents) > devices) {
      if (product(extents) % devices != 0) return std::nullopt;
      const std::int64_t ratio = product(extents) / devices;
      const auto& free = which == DotTensor::lhs ? dims.lhs_free : dims.rhs_free;
      if (value.tiling.is_partial() && value.tiling.replicas() % ratio == 0) {
        extents.back() /= ratio;
        if (extents.back() == 1) extents.pop_back();
      } else if (ratio == free_tiles &&
                 (ratio != contracting_tiles || contracting_tiles == other_contracting_tiles)) {
        for (const std::int64_t dim : dims_in(free, which)) extents[at(dim)] = 1;
      } else if (ratio == contracting_tiles) {
        for (const std::int64_t dim : dims_in(dims.contracting, which)) extents[at(dim)] = 1;
      } else {
        return std::nullopt;
      }
    }
    if (product(extents) < devices) return std::nullopt;
    return extents;
  }

  [[nodiscard]] std::optional<Sharded> into_groups(const GroupedTiling& output,
                                                   const Tiling& result, bool keep_groups) const {
    const Dims batch = dims_in(dims.batch, which);
    if (value.tiling.is_replicated()) {
      const GroupedTiling grouped{output.groups, batch, output.sizes, value.shape.size(), Tiling()};
      return within(reshard(value, ungroup(grouped)), grouped);
    }
    const std::optional<Shape> extents = extents_for(result);
    if (!extents.has_value()) return std::nullopt;
    const GroupedTiling grouped =
        align_groups(group_by(with_extents(value.tiling, *extents), batch), output);
    const Tiling tiling = ungroup(grouped);
    if (keep_groups && tiling != value.tiling) return std::nullopt;
    return within(reshard(value, tiling), grouped);
  }
};

// Both operands split the batch in the same way: the larger one keeps its groups, the other and the
// result follow.
DotAttempt group_on_same_batch(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                               const DotTarget& target) {
  GroupedTiling lhs_grouped = group_by(lhs.tiling, dims_in(dot.dims.batch, DotTensor::lhs));
  GroupedTiling rhs_grouped = group_by(rhs.tiling, dims_in(dot.dims.batch, DotTensor::rhs));
  if (local_bytes(lhs) > local_bytes(rhs)) {
    rhs_grouped = align_groups(rhs_grouped, lhs_grouped);
  } else {
    lhs_grouped = align_groups(lhs_grouped, rhs_grouped);
  }
  const Sharded new_lhs = reshard(lhs, ungroup(lhs_grouped));
  const Sharded new_rhs = reshard(rhs, ungroup(rhs_grouped));
  Shape extents = target.tiling.extents();
  for (const DotDim& dim : dot.dims.batch) extents[at(dim.output)] = lhs.tiles(dim.lhs);
  const GroupedTiling output = align_groups(
      group_by(with_extents(target.tiling, extents), dims_in(dot.dims.batch, DotTensor::output)),
      lhs_grouped);
  const ValueId made =
      partition_dot(dot, within(new_lhs, lhs_grouped), within(new_rhs, rhs_grouped),
                    {shape_within(output, target.shape), output.tiling});
  return reshard({made, target.shape, ungroup(output), lhs.context}, target.tiling).value;
}

// --- free dimensions ---------------------------------------------------------------------------

// The operand whose free dimensions are split as in the result, `matching`, and the other one.
struct FreeGroups {
  const Dot& dot;
  bool lhs_matches;
  Sharded matching;
  Sharded other;
  const DotTarget& target;
  DotTiles tiles;
  std::vector<DotDim> dims;  // of `matching` and the result

  [[nodiscard]] DotTensor matching_tensor() const {
    return lhs_matches ? DotTensor::lhs : DotTensor::rhs;
  }
  [[nodiscard]] DotTensor other_tensor() const {
    return lhs_matches ? DotTensor::rhs : DotTensor::lhs;
  }

  [[nodiscard]] GroupedTiling group_matching(const GroupedTiling& output) const {
    Shape extents = matching.tiling.extents();
    for (const DotDim& dim : dims) {
      extents[at(lhs_matches ? dim.lhs : dim.rhs)] = target.tiling.tiles(dim.output);
    }
    return align_groups(
        group_by(with_extents(matching.tiling, extents), dims_in(dims, matching_tensor())), output);
  }

  // Dimensions of the other operand that its devices are grouped by and that become whole.
  [[nodiscard]] std::optional<Dims> dims_to_give_up(const Sharded& value,
                                                    const GroupedTiling& output) const {
    if (auto found = dims_of_groups(value.tiling, output.groups)) return found;
    const auto groups = static_cast<std::int64_t>(output.groups.size());
    const std::int64_t contracting = lhs_matches ? tiles.rhs_contracting : tiles.lhs_contracting;
    const std::int64_t its_contracting =
        lhs_matches ? tiles.lhs_contracting : tiles.rhs_contracting;
    const std::int64_t free = lhs_matches ? tiles.rhs_free : tiles.lhs_free;
    const std::int64_t output_free = lhs_matches ? tiles.output_rhs_free : tiles.output_lhs_free;
    const bool may_contracting = contracting == groups && free == output_free;
    const bool may_free = free == groups && its_contracting == contracting;
    if (may_contracting && (!may_free || local_bytes(value) <= result_bytes())) {
      return dims_in(dot.dims.contracting, other_tensor());
    }
    if (may_free) {
      return dims_in(lhs_matches ? dot.dims.rhs_free : dot.dims.lhs_free, other_tensor());
    }
    return std::nullopt;
  }

  [[nodiscard]] std::int64_t result_bytes() const {
    return bytes_of(product(shard_shape(target.shape, target.tiling)), dot.type);
  }

  // The groups of the result in the tiling of the other operand.
  [[nodiscard]] std::optional<GroupedTiling> group_other(const Sharded& value,
                                                         const GroupedTiling& output) const {
    const Tiling& tiling = value.tiling;
    if (tiling.is_replicated()) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(tiling.tiles().size());
    const auto groups = static_cast<std::int64_t>(output.groups.size());
    if (tiling.is_partial() && tiling.replicas() % groups == 0) {
      if (auto found = group_replicas_or_swapped(tiling, output.groups)) return found;
      return align_groups(group_by(tiling, {rank}, {groups}), output, /*ignore_order=*/true);
    }
    const std::optional<Dims> dims_given_up = dims_to_give_up(value, output);
    if (!dims_given_up.has_value()) return std::nullopt;
    return align_groups(group_by(tiling, *dims_given_up), output, /*ignore_order=*/true);
  }

  // By the replicas, or by a dimension that changes places with them.
  [[nodiscard]] static std::optional<GroupedTiling> group_replicas_or_swapped(
      const Tiling& tiling, const DeviceGroups& groups) {
    const Shape extents = tiling.extents();
    for (std::size_t i = extents.size(); i-- > 0;) {
      if (extents[i] % static_cast<std::int64_t>(groups.size()) != 0) continue;
      Dims order = iota_dims(extents.size());
      std::swap(order[i], order.back());
      if (auto found = group_replicas_into(transpose(tiling, order), groups)) return found;
    }
    return std::nullopt;
  }

  // The other operand within the groups, whole in the dimensions they are made of.
  [[nodiscard]] static Sharded other_within(const Sharded& value, const GroupedTiling& grouped) {
    const auto rank = static_cast<std::int64_t>(value.shape.size());
    const Tiling in_groups = ungroup(grouped);
    Sharded moved = value;
    if (grouped.dims == Dims{rank}) {
      moved = reshard(value, in_groups);
    } else {
      const bool same = same_groups(group_by(in_groups, grouped.dims).groups, grouped.groups);
      if (!value.tiling.is_partial() || !same) moved = reshard(value, in_groups);
      Dims given_up = grouped.dims;
      std::erase(given_up, rank);
      moved = reshard(moved, replicate_dims(moved.tiling, given_up));
    }
    return {moved.value, value.shape, grouped.tiling, &value.context->grouped(grouped.groups)};
  }

  [[nodiscard]] DotAttempt attempt(bool keep_groups) {
    const GroupedTiling output = group_by(target.tiling, dims_in(dims, DotTensor::output));
    const GroupedTiling grouped = group_matching(output);
    if (keep_groups && matching.tiling != ungroup(grouped)) return std::nullopt;

    std::optional<GroupedTiling> other_grouped = group_other(other, output);
    if (!other_grouped && !other.tiling.is_replicated() && dot.dims.spatial.empty()) {
      const Sharded expected =
          reshard(other, operand_tiling(dot.dims, other_tensor(), target.tiling, &matching.tiling));
      other_grouped = group_other(expected, output);
      if (other_grouped) other = expected;
    }
    if (!other_grouped) other = replicate(other);

    const Sharded inner_matching = within(reshard(matching, ungroup(grouped)), grouped);
    const Sharded inner_other =
        other_grouped ? other_within(other, *other_grouped)
                      : Sharded{other.value, other.shape, Tiling(), inner_matching.context};
    const DotTarget inner{shape_within(output, target.shape), output.tiling};
    return lhs_matches ? partition_dot(dot, inner_matching, inner_other, inner)
                       : partition_dot(dot, inner_other, inner_matching, inner);
  }
};

// Those of a list that operand and result split in equally many tiles.
std::vector<DotDim> equally_split(const std::vector<DotDim>& dims, const Tiling& operand,
                                  DotTensor tensor, const Tiling& output) {
  std::vector<DotDim> result;
  for (const DotDim& dim : dims) {
    const std::int64_t tiles = operand.tiles(tensor == DotTensor::lhs ? dim.lhs : dim.rhs);
    if (tiles > 1 && tiles == output.tiles(dim.output)) result.push_back(dim);
  }
  return result;
}

}  // namespace

DotAttempt group_on_batch(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                          const DotTarget& target, bool keep_groups) {
  const DotTiles tiles = tiles_of(dot.dims, lhs.tiling, rhs.tiling, target.tiling);
  if (tiles.output_batch == 1 ||
      (tiles.lhs_batch != tiles.output_batch && tiles.rhs_batch != tiles.output_batch)) {
    return std::nullopt;
  }
  bool same = true;
  for (const DotDim& dim : dot.dims.batch) same &= lhs.tiles(dim.lhs) == rhs.tiles(dim.rhs);
  if (keep_groups && same) {
    same = rhs.tiling ==
           ungroup(align_groups(group_by(rhs.tiling, dims_in(dot.dims.batch, DotTensor::rhs)),
                                group_by(lhs.tiling, dims_in(dot.dims.batch, DotTensor::lhs))));
  }
  if (same) return group_on_same_batch(dot, lhs, rhs, target);

  const GroupedTiling output = group_by(target.tiling, dims_in(dot.dims.batch, DotTensor::output));
  const BatchOperand left{
      dot.dims, DotTensor::lhs, lhs, tiles.lhs_contracting, tiles.rhs_contracting, tiles.lhs_free};
  const BatchOperand right{
      dot.dims, DotTensor::rhs, rhs, tiles.rhs_contracting, tiles.lhs_contracting, tiles.rhs_free};
  const std::optional<Sharded> inner_lhs = left.into_groups(output, target.tiling, keep_groups);
  if (!inner_lhs) return std::nullopt;
  const std::optional<Sharded> inner_rhs = right.into_groups(output, target.tiling, keep_groups);
  if (!inner_rhs) return std::nullopt;
  return partition_dot(dot, *inner_lhs, *inner_rhs,
                       {shape_within(output, target.shape), output.tiling});
}

DotAttempt group_on_free(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                         const DotTarget& target, bool keep_groups) {
  const DotTiles tiles = tiles_of(dot.dims, lhs.tiling, rhs.tiling, target.tiling);
  const bool lhs_fits = tiles.lhs_free == tiles.output_lhs_free && tiles.lhs_free > 1;
  const bool rhs_fits = tiles.rhs_free == tiles.output_rhs_free && tiles.rhs_free > 1;
  bool lhs_matches = false;
  std::vector<DotDim> dims;
  if (lhs_fits || rhs_fits) {
    lhs_matches = lhs_fits && (!rhs_fits || tiles.lhs_free * local_bytes(rhs) <
                                                tiles.rhs_free * local_bytes(lhs));
    dims = lhs_matches ? dot.dims.lhs_free : dot.dims.rhs_free;
  } else if (tiles.lhs_free > 1 && tiles.output_lhs_free > 1) {
    lhs_matches = true;
    dims = equally_split(dot.dims.lhs_free, lhs.tiling, DotTensor::lhs, target.tiling);
  } else if (tiles.rhs_free > 1 && tiles.output_rhs_free > 1) {
    dims = equally_split(dot.dims.rhs_free, rhs.tiling, DotTensor::rhs, target.tiling);
  }
  if (dims.empty()) return std::nullopt;
  FreeGroups groups{dot,    lhs_matches, lhs_matches ? lhs : rhs, lhs_matches ? rhs : lhs,
                    target, tiles,       std::move(dims)};
  return groups.attempt(keep_groups);
}

}  // namespace shardsim::spmd
