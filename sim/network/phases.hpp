// A collective as its algorithm runs it: phases, in each of which a rank of a group sends to one
// other rank at most and receives from one at most, the same number of times. A rank begins a step
// when it has sent and received all of the one before: there is no barrier.
//
// Example: an all-gather of 1 GiB over a ring of 8: one phase of 7 steps, rank r to rank r + 1,
// 128 MiB each.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace shardsim::network {

inline constexpr std::int32_t nobody = -1;

struct Phase {
  std::int64_t steps = 1;
  Bytes bytes{0};                    // of a message
  std::vector<std::int32_t> target;  // by rank: another one, or nobody; none twice
};

// What the ranks of one group do, or those of every group alike.
using Phases = std::vector<Phase>;

// Of all ranks to the one `by` further on, modulo their number, which `by` is below.
[[nodiscard]] std::vector<std::int32_t> shift(std::int64_t ranks, std::int64_t by);

}  // namespace shardsim::network
