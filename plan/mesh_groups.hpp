// Groups of devices, told as axes of a mesh.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/mesh.hpp"

namespace shardsim {

// Two parts hold the same digit of the device number.
[[nodiscard]] bool parts_overlap(std::vector<AxisRef> parts);

// The axes, or parts of axes, over which `groups` run, major to minor in the order in which a group
// counts; nothing when they are no product of axes. The order of the groups does not matter.
//
//   mesh x=2,y=4: {0,4} {1,5} {2,6} {3,7} -> x     {0,4,1,5} {2,6,3,7} -> y:(2)2, x
[[nodiscard]] std::optional<std::vector<AxisRef>> axes_of_groups(
    const Mesh& mesh, const std::vector<std::vector<std::int64_t>>& groups);

}  // namespace shardsim
