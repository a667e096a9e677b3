// How a group lies on a torus: the axes of a collective select digits of the physical coordinates,
// and all digits in one dimension together are a lane.
//
//   ring     the members span the whole dimension and it wraps
//   sharing  groups that lie interleaved on the same links: extent with the gaps / members
//   hops     from a member to the farthest: ring length / 2, line length
//
// The devices of a chip are a last dimension, which is a line. A dimension that twists closes in
// groups that have all of the dimensions it twists into.
//
// Example: a wrapped dimension of 16 under the axes outer = 4, inner = 4. The groups of inner are
// lines of 4 neighbours, 3 hops; those of outer, {0, 4, 8, 12} and three like it, rings of 8 hops
// whose links 4 groups share.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/placement.hpp"

namespace shardsim {

struct Lane {
  int dimension = 0;
  std::int64_t members = 1;
  std::int64_t sharing = 1;
  bool ring = false;
  std::int64_t hops = 0;
  friend bool operator==(const Lane&, const Lane&) = default;
};

// The digits of coordinates that the axes select, major to minor: those of axes[0] first. Throws
// InputError for a part of an axis that cuts a dimension where it cannot be cut.
[[nodiscard]] std::vector<TorusSpan> digits_of(const Placement& placement,
                                               const std::vector<AxisRef>& axes);

// By dimension; dimensions in which the group does not extend are left out.
[[nodiscard]] std::vector<Lane> lanes_of(const Placement& placement,
                                         const std::vector<AxisRef>& axes);

// Of the links of a dimension.
[[nodiscard]] LinkLevel level_of(const Placement& placement, int dimension);

}  // namespace shardsim
