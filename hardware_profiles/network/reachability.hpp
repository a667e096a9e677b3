// Whether every device of a network reaches every other, through what forwards.
//
//   find_unreachable(graph)     devices 0 and 5: nothing from 0 arrives at 5
//
// Cost: O(links) for every neighbour of device 0 that forwards, until one is found through which
// all devices are joined, which then does for every two; where none is, O(links) for every device.
#pragma once

#include <optional>
#include <utility>

#include "hardware_profiles/network/network_graph.hpp"

namespace shardsim {

// The first device that is not reached, and the first that does not reach it; nothing where all
// reach each other.
[[nodiscard]] std::optional<std::pair<NodeId, NodeId>> find_unreachable(const NetworkGraph& graph);

}  // namespace shardsim
