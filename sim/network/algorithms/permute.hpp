// Messages between given pairs, all at once; of one pair, send and receive.
//
//   time = latency + P / bandwidth
#pragma once

#include <utility>

#include "sim/network/phases.hpp"

namespace shardsim::network {

// The payload is one message. What a rank sends to several, or receives of several, goes at the
// same time; pairs of a rank with itself move nothing. No lane without pairs.
[[nodiscard]] Lanes permute(std::int64_t ranks,
                            const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs);

}  // namespace shardsim::network
