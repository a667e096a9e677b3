// The cheapest way from one tiling to another, as a shortest path.
//
// A device number is written in digits, the prime factors of the mesh axes; a tiling says for every
// dimension which digits split it, major to minor, and the rest are replicas. Steps and what one
// device sends in them (L bytes of its tile before, p the size of the digits that move):
//
//   slice      a replica digit splits a dimension further           0
//   gather     the minor digit of a dimension becomes a replica     (p - 1) L
//   exchange   the minor digits of one dimension move to another    (p - 1)/p L
//   permute    digits change places, tiles keep their size          L
//
// Example, mesh x=2, y=4, columns over (x, y) to rows over (y, x): y moves to the rows for 3/4 L,
// then x behind it for 1/2 L. XLA moves both at once for 7/8 L, which leaves (x, y), and permutes
// for L.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "spmd/tiling/tiling.hpp"

namespace shardsim::spmd {

// For every dimension the digits that split it, major to minor; nothing when a tile's number is no
// mixed-radix number of them.
[[nodiscard]] std::optional<std::vector<std::vector<int>>> digits_of(
    const Tiling& tiling, std::size_t rank, const std::vector<std::int64_t>& digits);

struct ReshardPath {
  std::vector<Tiling> steps;  // the tilings after each step; the last is the target
  double wire_bytes = 0;      // that one device sends
};

// What a device must receive at least, on average: the part of its new tile that it did not hold.
[[nodiscard]] double least_bytes(const Shape& shape, double element_bytes, const Tiling& from,
                                 const Tiling& to);

// `digits`: the radices of a device number, major to minor. Nothing when a tiling is not made of
// digits, a dimension is uneven, or no path sends less than `limit`.
[[nodiscard]] std::optional<ReshardPath> cheapest_path(const Shape& shape, double element_bytes,
                                                       const Tiling& from, const Tiling& to,
                                                       const std::vector<std::int64_t>& digits,
                                                       double limit);

}  // namespace shardsim::spmd
