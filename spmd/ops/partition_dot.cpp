#include "spmd/ops/partition_dot.hpp"

#include "base/index.hpp"
#include "spmd/ops/dot_result.hpp"
#include "spmd/partitioner.hpp"
#include "spmd/tiling/tiling_match.hpp"

namespace shardsim::spmd {
namespace {

// Operands are whole: each replica of the result computes the same, so that one is enough.
DotAttempt group_on_replicas(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                             const DotTarget& target) {
  if (!lhs.tiling.is_replicated() || !rhs.tiling.is_replicated() || !target.tiling.is_partial()) {
    return std::nullopt;
  }
  const GroupedTiling grouped =
      group_by(target.tiling, {static_cast<std::int64_t>(target.shape.size())});
  Sharded inner_lhs = lhs;
  Sharded inner_rhs = rhs;
  inner_lhs.context = inner_rhs.context = &lhs.context->grouped(grouped.groups);
  return partition_dot(dot, inner_lhs, inner_rhs, {target.shape, grouped.tiling});
}

DotAttempt try_round(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                     const DotTarget& target, bool keep_groups) {
  if (dot.try_convolution) {
    if (const auto tried = dot.try_convolution(dot, lhs, rhs, target, keep_groups)) return *tried;
  }
  if (const auto made = split_one_part(dot, lhs, rhs, target, /*may_reshard=*/false)) return made;
  if (const auto made = group_on_batch(dot, lhs, rhs, target, keep_groups)) return made;
  if (const auto made = group_on_free(dot, lhs, rhs, target, keep_groups)) return made;
  if (const auto made = group_on_contracting(dot, lhs, rhs, target, keep_groups)) return made;
  if (const auto made = group_on_replicas(dot, lhs, rhs, target)) return made;
  return split_one_part(dot, lhs, rhs, target, /*may_reshard=*/true);
}

// `tiling` of a tensor as another lies over the dimensions that both share: `batch` and `others` of
// that one, whose dimensions are those of `map` in this; all else is whole.
Tiling seen_over(const Tiling& tiling, std::size_t rank, const Dims& map, const Dims& batch,
                 const Dims& others) {
  Dims from_of(map.size(), -1);
  Dims to_of(rank, -1);
  for (const Dims* dims : {&batch, &others}) {
    for (const std::int64_t dim : *dims) {
      from_of[at(dim)] = map[at(dim)];
      to_of[at(map[at(dim)])] = dim;
    }
  }
  return *match_dims(replicate_all_but(tiling, from_of), to_of, from_of);
}

}  // namespace

ValueId partition_dot(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                      const DotTarget& target) {
  for (const bool keep_groups : {true, false}) {
    if (const auto made = try_round(dot, lhs, rhs, target, keep_groups)) return *made;
  }
  if (dot.dims.spatial.empty()) {
    const Tiling for_lhs = operand_tiling(dot.dims, DotTensor::lhs, target.tiling, nullptr);
    const Tiling for_rhs = operand_tiling(dot.dims, DotTensor::rhs, target.tiling, nullptr);
    const Sharded lhs_there = reshard(lhs, for_lhs);
    return dot.make(lhs_there, reshard(rhs, for_rhs), dot.window);
  }
  const Sharded whole_lhs = replicate(lhs);
  const ValueId made = dot.make(whole_lhs, replicate(rhs), dot.window);
  return reshard({made, target.shape, Tiling(), lhs.context}, target.tiling).value;
}

Tiling operand_tiling(const DotDims& dims, DotTensor operand, const Tiling& result,
                      const Tiling* other) {
  const bool is_lhs = operand == DotTensor::lhs;
  const DotMaps maps = maps_of(dims);
  const Dims batch = dims_in(dims.batch, operand);
  Tiling from_result =
      seen_over(result, dims.output_rank, is_lhs ? maps.lhs_to_output : maps.rhs_to_output, batch,
                dims_in(is_lhs ? dims.lhs_free : dims.rhs_free, operand));
  if (other == nullptr) return from_result;
  Tiling from_other = seen_over(*other, is_lhs ? dims.rhs_rank : dims.lhs_rank,
                                is_lhs ? maps.lhs_to_rhs : maps.rhs_to_lhs, batch,
                                dims_in(dims.contracting, operand));
  if (from_result.is_partial() && from_other.is_partial()) {
    const std::int64_t more = std::max(from_result.tile_count(), from_other.tile_count()) + 1;
    if (auto both = merge_tilings(from_result, from_other, more)) return *std::move(both);
  }
  return from_other.tile_count() > from_result.tile_count() ? from_other : from_result;
}

Shape shape_within(const GroupedTiling& grouped, const Shape& shape) {
  Shape result = shape;
  for (std::size_t i = 0; i < grouped.dims.size(); ++i) {
    const std::size_t dim = at(grouped.dims[i]);
    if (dim < result.size()) result[dim] = ceil_div(result[dim], grouped.sizes[i]);
  }
  return result;
}

Sharded within(const Sharded& value, const GroupedTiling& grouped) {
  return {value.value, shape_within(grouped, value.shape), grouped.tiling,
          &value.context->grouped(grouped.groups)};
}

std::int64_t bytes_of(std::int64_t elements, const TensorType& type) {
  return static_cast<std::int64_t>(static_cast<double>(elements) * element_bytes(type));
}

std::int64_t local_bytes(const Sharded& value) {
  const TensorType& type = value.context->builder().type(value.value);
  return bytes_of(type.elements(), type);
}

std::int64_t whole_bytes(const Sharded& value) {
  return bytes_of(product(value.shape), value.context->builder().type(value.value));
}

ValueId sum_along(Context& context, ValueId value, const Tiling& tiling, const Dims& dims) {
  const bool logical = context.builder().type(value).element == "i1";
  return all_reduce_along(context, value, tiling, dims, logical ? "or" : "add");
}

void partition_dot_general(Partitioner& p, const OpView& op) {
  op.expect_counts(2, 1);
  Sharded lhs = p.operand(op, 0);
  Sharded rhs = p.operand(op, 1);
  // One value as both operands is resharded in two ways; XLA keeps two copies apart.
  if (lhs.value == rhs.value) rhs.value = p.builder().copy(rhs.value);

  Dot dot;
  dot.dims = dot_dims(op);
  const DotDims& dims = dot.dims;
  const TensorType& whole = op.function().type_of(op.op().results.front());
  dot.type = whole;
  dot.make = [&](const Sharded& l, const Sharded& r, const Window&) {
    TensorType type = whole;
    const Shape& lhs_shape = p.builder().shape(l.value);
    const Shape& rhs_shape = p.builder().shape(r.value);
    for (const auto* list : {&dims.batch, &dims.lhs_free, &dims.rhs_free}) {
      for (const DotDim& dim : *list) {
        type.dims[at(dim.output)] = dim.lhs >= 0 ? lhs_shape[at(dim.lhs)] : rhs_shape[at(dim.rhs)];
      }
    }
    return p.clone(op, {l.value, r.value}, {type}).front();
  };
  const Tiling tiling = p.tiling_of_result(op, 0);
  const Tiling as_made = finer_result(op, dims, lhs.tiling, rhs.tiling, tiling).value_or(tiling);
  const ValueId made = partition_dot(dot, lhs, rhs, {whole.dims, as_made});
  p.set_result(op, 0, reshard({made, whole.dims, as_made, lhs.context}, tiling));
}

}  // namespace shardsim::spmd
