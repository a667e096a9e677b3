// How the groups of a collective lie on the nodes of a cluster.
//
// Example: 16 devices on 2 nodes of 8, mesh data=2, model=8: a group over `model` is {8 members,
// 1 node}, one over `data` {2 members, 2 nodes}, one over both {16 members, 2 nodes}.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace shardsim {

struct NodeSpread {
  std::int64_t members = 1;
  std::int64_t nodes = 1;
  std::int64_t fewest = 1;  // members on the node that has fewest, but some
  std::int64_t most = 1;
  friend auto operator<=>(const NodeSpread&, const NodeSpread&) = default;
};

// The distinct spreads of the groups, ordered. Cost: O(axes) where the borders of nodes and of the
// axes' digits nest, so that all groups are alike; O(devices) otherwise.
[[nodiscard]] std::vector<NodeSpread> node_spreads(const Mesh& mesh, const Collective& collective,
                                                   std::int64_t devices_per_node);

}  // namespace shardsim
