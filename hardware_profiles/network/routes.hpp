// Ways through a network: the fewest hops from one device to another, over what forwards
// (NetworkGraph::forwards): where there are switches, mostly they alone; on rings and tori devices.
//
// Where several links lead on, the choice is the network's:
//   first           the one that was connected first: on a torus, one dimension after the other
//   by_destination  the digits of the target's number, least significant first: in a fat tree what
//                   goes to different devices takes different wires up, so that shifts by any
//                   distance do not meet (D-mod-k; Zahavi, "Fat-tree routing and node ordering
//                   providing contention free traffic for MPI global collectives", JPDC 72(11),
//                   2012)
//
// Example: in a fat tree with two spines, device 0 reaches device 6 over spine 0, device 7 over
// spine 1.
//
// Cost: for a target that is no neighbour, as many links as lead to nodes nearer to it than the
// source, O(links) at most; once for all sources of a target that follow each other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hardware_profiles/network/network_graph.hpp"

namespace shardsim {

enum class RouteChoice : std::uint8_t { first, by_destination };

// The ways from all nodes to one: where choices are not made by destination, what goes on from a
// node goes the same way wherever it came from.
struct WaysTo {
  std::vector<NodeId> nodes;  // the target, then those with the fewest hops first
  std::vector<LinkId> next;   // by position in `nodes`: the link that leads on; the target has -1
};

class Router {
 public:
  // The graph outlives the router.
  Router(const NetworkGraph& graph, RouteChoice choice);
  ~Router();

  // The links from one device to another, in order; none from a device to itself.
  [[nodiscard]] std::vector<LinkId> route(NodeId source, NodeId target);
  // All routes to a target at once, O(nodes + links). Requires RouteChoice::first.
  [[nodiscard]] WaysTo ways_to(NodeId target);

 private:
  struct Reversed;  // boost's graph, links the other way round

  void begin(NodeId target);
  void search_on();
  void measure(NodeId source, NodeId target);
  [[nodiscard]] std::vector<LinkId> choices(NodeId node, NodeId target);

  const NetworkGraph& graph_;
  RouteChoice choice_;
  std::unique_ptr<Reversed> reversed_;
  NodeId measured_ = -1;      // the target of the last search
  std::vector<NodeId> hops_;  // to it, from the nodes that the search has met
  std::vector<NodeId> met_;   // in this order
  std::size_t next_ = 0;      // of them to be searched from
};

}  // namespace shardsim
