// Where the ranks of a group are on a graph, for algorithms in which switches take part: by nodes,
// as a library sees them. Ranks that no node joins are each a node of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware_profiles/network/network_graph.hpp"
#include "sim/network/schedule.hpp"

namespace shardsim::network {

struct PlacedNode {
  std::vector<NodeId> members;
  std::vector<NodeId> heads;  // of the members, each with a way out of the node of its own
  NodeId hub = -1;            // the switch that joins the members; -1: none
};
using PlacedGroup = std::vector<PlacedNode>;

// Of all groups at once; ranks are nodes of the graph.
struct OverSwitches {
  Schedule (*schedule)(const NetworkGraph& graph, const std::vector<PlacedGroup>& groups);
};

// So many ranks that follow each other are a node. Of one rank each there is no hub, else it is
// what the first way out of the first leads to.
[[nodiscard]] inline PlacedGroup placed_in_order(const NetworkGraph& graph,
                                                 const std::vector<NodeId>& ranks,
                                                 std::int64_t per_node) {
  PlacedGroup nodes;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (static_cast<std::int64_t>(i) % per_node == 0) {
      PlacedNode& node = nodes.emplace_back();
      const auto link = static_cast<std::size_t>(graph.first_out(ranks[i]));
      if (per_node > 1) node.hub = graph.links()[link].to;
    }
    nodes.back().members.push_back(ranks[i]);
    nodes.back().heads.push_back(ranks[i]);
  }
  return nodes;
}

}  // namespace shardsim::network
