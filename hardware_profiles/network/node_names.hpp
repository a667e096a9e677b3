// What people call the nodes of a network written in place, or of a graph.
//
//   host0.gpu3                 of a graph, as it names them
//   device 3                   everywhere else
//   switch                     the only one
//   leaf 0, spine 1            of a fat tree with two tiers of switches
//   tier 2 switch 5            of one between leaves and spines
//   group 1 switch 0           of a dragonfly
#pragma once

#include <string>

#include "hardware_profiles/network/network_text.hpp"

namespace shardsim {

// Of a network that build() can build.
[[nodiscard]] std::string node_name(const NetworkDescription& network, std::int64_t devices,
                                    NodeId node);

}  // namespace shardsim
