#include "spmd/ops/partition_dot.hpp"
#include "spmd/reshard/reshard_choice.hpp"
#include "spmd/tiling/tiling_match.hpp"

namespace shardsim::spmd {
namespace {

// Tilings of each tensor as another would have them; nothing where a split dimension is not there.
struct Matched {
  std::optional<Tiling> lhs_as_rhs, lhs_as_output;
  std::optional<Tiling> rhs_as_lhs, rhs_as_output;
  std::optional<Tiling> output_as_lhs, output_as_rhs;
};

Matched match_all(const DotDims& dims, const Tiling& lhs, const Tiling& rhs, const Tiling& output) {
  const DotMaps maps = maps_of(dims);
  return {.lhs_as_rhs = match_dims(lhs, maps.lhs_to_rhs, maps.rhs_to_lhs),
          .lhs_as_output = match_dims(lhs, maps.lhs_to_output, maps.output_to_lhs),
          .rhs_as_lhs = match_dims(rhs, maps.rhs_to_lhs, maps.lhs_to_rhs),
          .rhs_as_output = match_dims(rhs, maps.rhs_to_output, maps.output_to_rhs),
          .output_as_lhs = match_dims(output, maps.output_to_lhs, maps.lhs_to_output),
          .output_as_rhs = match_dims(output, maps.output_to_rhs, maps.rhs_to_output)};
}

struct Attempt {
  const Dot& dot;
  Sharded lhs;
  Sharded rhs;
  const DotTarget& target;
  int devices;
  DotTiles tiles;
  Matched as;

  [[nodiscard]] ValueId make(const Sharded& l, const Sharded& r) const {
    return dot.make(l, r, dot.window);
  }

  // One operand and the result are split over batch dimensions: the other follows. `cheaply`: by
  // exchange or permute only.
  [[nodiscard]] DotAttempt batch_with_reshard(bool cheaply) const {
    if (tiles.output_batch != devices) return std::nullopt;
    const auto allowed = [&](const Tiling& from, const Tiling& to) {
      return !cheaply || can_permute(from, to) || all_to_all_dims(from, to).has_value();
    };
    if (tiles.lhs_batch == devices && as.lhs_as_output == target.tiling) {
      if (!allowed(rhs.tiling, *as.lhs_as_rhs)) return std::nullopt;
      return make(lhs, reshard(rhs, *as.lhs_as_rhs));
    }
    if (tiles.rhs_batch == devices && as.rhs_as_output == target.tiling) {
      if (!allowed(lhs.tiling, *as.rhs_as_lhs)) return std::nullopt;
      return make(reshard(lhs, *as.rhs_as_lhs), rhs);
    }
    return std::nullopt;
  }

  // Both operands hold the same part of every contracting dimension; partial sums are added up.
  [[nodiscard]] ValueId summed(const Sharded& l, const Sharded& r) const {
    const Sharded padded_lhs = pad_with_zero(l);
    const ValueId partial = make(padded_lhs, pad_with_zero(r));
    return sum_along(*lhs.context, partial, l.tiling,
                     dims_in(dot.dims.contracting, DotTensor::lhs));
  }

  // The free dimensions of one operand are split as in the result: the other is gathered.
  [[nodiscard]] DotAttempt free() const {
    if (tiles.lhs_free == devices && tiles.output_lhs_free == devices &&
        as.lhs_as_output == target.tiling) {
      return make(lhs, replicate(rhs));
    }
    if (tiles.rhs_free == devices && tiles.output_rhs_free == devices &&
        as.rhs_as_output == target.tiling) {
      return make(replicate(lhs), rhs);
    }
    return std::nullopt;
  }

  [[nodiscard]] DotAttempt as_result() const {
    if (tiles.output_batch == devices) {
      const Sharded l = reshard(lhs, *as.output_as_lhs);
      return make(l, reshard(rhs, *as.output_as_rhs));
    }
    if (tiles.output_lhs_free == devices) {
      const Sharded l = reshard(lhs, *as.output_as_lhs);
      return make(l, replicate(rhs));
    }
    if (tiles.output_rhs_free == devices) {
      const Sharded l = replicate(lhs);
      return make(l, reshard(rhs, *as.output_as_rhs));
    }
    return std::nullopt;
  }

  // One operand is split over contracting dimensions and the other is whole: slicing that and
  // adding up moves less than gathering, if the result is the smaller.
  [[nodiscard]] DotAttempt whole_result() const {
    if (!target.tiling.is_replicated()) return std::nullopt;
    const std::int64_t elements = product(target.shape);
    if (tiles.rhs_contracting == devices && lhs.tiling.is_replicated() &&
        product(rhs.shape) > elements) {
      return summed(reshard(lhs, *as.rhs_as_lhs), rhs);
    }
    if (tiles.lhs_contracting == devices && rhs.tiling.is_replicated() &&
        product(lhs.shape) > elements) {
      return summed(lhs, reshard(rhs, *as.lhs_as_rhs));
    }
    return std::nullopt;
  }
};

}  // namespace

DotAttempt split_one_part(const Dot& dot, const Sharded& lhs, const Sharded& rhs,
                          const DotTarget& target, bool may_reshard) {
  if (target.tiling.is_partial()) return std::nullopt;
  const Attempt attempt{dot,
                        lhs,
                        rhs,
                        target,
                        lhs.context->devices(),
                        tiles_of(dot.dims, lhs.tiling, rhs.tiling, target.tiling),
                        match_all(dot.dims, lhs.tiling, rhs.tiling, target.tiling)};
  if (attempt.tiles.lhs_batch == attempt.devices && attempt.tiles.rhs_batch == attempt.devices &&
      attempt.as.lhs_as_rhs == rhs.tiling) {
    return reshard({attempt.make(lhs, rhs), target.shape, *attempt.as.lhs_as_output, lhs.context},
                   target.tiling)
        .value;
  }
  for (const bool cheaply : {true, false}) {
    if (const auto made = attempt.batch_with_reshard(cheaply)) return made;
  }
  if (const auto made = attempt.free()) return made;
  if (may_reshard) {
    if (const auto made = attempt.as_result()) return made;
  }
  return attempt.whole_result();
}

}  // namespace shardsim::spmd
