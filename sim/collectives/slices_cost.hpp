// Collectives over several slices of TPUs, which the data centre's network (DCN) joins.
//
// A group of n = k m members has m in each of k slices. Over k > 1 and m > 1 XLA goes in levels: in
// the slices first or last, over links between chips (torus_cost.hpp), and between counterparts,
// each a ring of its own over k slices, with what is left. P = payload, w = what a chip has of its
// host's NICs over the devices of a chip:
//
//   all-reduce      the two halves of one of P in the slices, between them over DCN
//                   2 (k-1)/k P/m / w
//   all-gather      over DCN (k-1)/k P/m / w, then all-gather of P in the slices
//   reduce-scatter  reduce-scatter of P in the slices, then over DCN (k-1)/k P/m / w
//   all-to-all      of P in the slices, which brings what is for other slices to the counterparts
//                   of its receivers, then over DCN (k-1)/k P / w, pairwise
//   permute         messages in slices routed there, those between slices over their chips' NICs,
//                   all at once
//
// A step over DCN has its latency, of which rings have k - 1 (an all-reduce 2 (k - 1)); every
// collective in the slices has its launch. Levels follow each other: nothing is pipelined.
//
// Sources: Cloud TPU's multislice introduction (docs.cloud.google.com/tpu/docs/
// multislice-introduction, 2026-11): the compiler makes the exchange between slices, through the
// hosts. jax-ml/scaling-book, chapter on training, "Scaling across pods": a ring over the slices,
// in which every chip sends its share: 2 P / (M W) for M chips of a slice that each have W. How
// the compiler exchanges all-to-alls is not published; the way above sends no more over DCN than
// one straight to every receiver.
//
// Example: all-reduce of 1 GB over 2 slices of 64 chips with 6.25 GB/s each: over DCN
// 2 * 1/2 * (1e9 / 64) / 6.25e9 = 2.5 ms, and what the all-reduce of 1 GB takes in a slice.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/placement.hpp"

namespace shardsim {

class SlicesCosts {
 public:
  // Of a placement on several slices, which outlives it.
  explicit SlicesCosts(const Placement& placement);

  // Throws InputError for parts of axes that cut the slices where they cannot be cut, and for
  // listed groups that lie on slices unevenly.
  [[nodiscard]] CostBreakdown cost(const Collective& collective) const;

 private:
  // What a group has of slices, and the collectives in them, of no kind and size yet.
  struct Levels {
    std::int64_t slices = 1;
    std::int64_t members = 1;  // in each
    std::vector<Collective> inside;
  };
  struct Position {
    std::int64_t slice = 0;
    std::int64_t inside = 0;  // position in the slice's mesh
  };

  [[nodiscard]] Levels levels_of(const Collective& collective) const;
  [[nodiscard]] Levels levels_of_axes(const std::vector<AxisRef>& axes) const;
  [[nodiscard]] Levels levels_of_groups(const std::vector<std::vector<std::int64_t>>& groups) const;
  [[nodiscard]] Position position_of(std::int64_t position) const;
  [[nodiscard]] CostBreakdown in_slices(const Levels& levels, CollectiveKind kind,
                                        Bytes payload) const;
  [[nodiscard]] CostBreakdown between_slices(const Levels& levels, CollectiveKind kind,
                                             double bytes) const;
  [[nodiscard]] CostBreakdown permute_cost(const Collective& collective) const;
  // Messages on the NICs of the busiest chip.
  [[nodiscard]] std::int64_t busiest_chip(
      const std::vector<std::pair<Position, Position>>& messages) const;

  const Placement& placement_;
  const TorusProfile& profile_;
  Placement slice_;  // any of them
};

}  // namespace shardsim
