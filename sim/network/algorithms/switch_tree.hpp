// The switches over which a reduction goes up, and its result down again: a tree with devices as
// leaves, whose inner nodes are switches of the graph.
//
// Its root is a switch from which the farthest leaf is as near as can be, then all together; of
// several that are as good the one that the number of the first leaf falls on, so that trees side
// by side, of groups that share leaf switches, have roots of their own (SHARP's aggregation manager
// spreads trees, too). Every switch is under the next one on a shortest way to the root. A switch
// with one child adds nothing up: who is below it is under the one above, and messages pass through
// (routes.hpp).
//
// Example: fat-tree(4x2): the leaves of each half under a leaf switch, both of these under the
// first spine; 8 + 2 + 1 nodes.
//
// Cost: a search of all links between switches for every switch with devices below, once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hardware_profiles/network/network_graph.hpp"
#include "sim/network/algorithms/tree.hpp"

namespace shardsim::network {

struct SwitchTree {
  std::vector<NodeId> nodes;               // the leaves in their order, then switches
  Tree parent;                             // by place in `nodes`
  std::vector<std::int64_t> leaves_below;  // the same; of a leaf 1
};

// Those of one graph, which outlives it.
class SwitchTrees {
 public:
  explicit SwitchTrees(const NetworkGraph& graph);
  ~SwitchTrees();

  // Of two leaves at least, all of them devices. Throws std::range_error where no switch reaches
  // all leaves by switches alone.
  [[nodiscard]] SwitchTree tree(const std::vector<NodeId>& leaves);

 private:
  class Ways;
  std::unique_ptr<Ways> ways_;
};

}  // namespace shardsim::network
