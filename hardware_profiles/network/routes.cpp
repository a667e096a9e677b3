#include "hardware_profiles/network/routes.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cassert>
#include <limits>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

using Graph = boost::compressed_sparse_row_graph<boost::directedS>;

constexpr NodeId unreached = std::numeric_limits<NodeId>::max();

Graph reverse(const NetworkGraph& graph) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  edges.reserve(graph.links().size());
  for (const NetworkLink& link : graph.links()) edges.emplace_back(at(link.to), at(link.from));
  return {boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), at(graph.nodes())};
}

}  // namespace

struct Router::Reversed {
  Graph graph;
};

Router::Router(const NetworkGraph& graph, RouteChoice choice)
    : graph_(graph), choice_(choice), reversed_(new Reversed{reverse(graph)}) {}

Router::~Router() = default;

void Router::begin(NodeId target) {
  if (hops_.empty()) hops_.assign(at(graph_.nodes()), unreached);
  if (measured_ == target) return;
  for (const NodeId node : met_) hops_[at(node)] = unreached;
  met_ = {target};
  next_ = 0;
  hops_[at(target)] = 0;
  measured_ = target;
}

// From one more of the nodes that have been met.
void Router::search_on() {
  assert(next_ < met_.size());
  const NodeId node = met_[next_++];
  if (node != measured_ && !graph_.forwards(node)) return;
  const Graph& graph = reversed_->graph;
  const auto [first, last] = out_edges(at(node), graph);
  for (auto edge = first; edge != last; ++edge) {
    const auto before = static_cast<NodeId>(boost::target(*edge, graph));
    if (hops_[at(before)] != unreached) continue;
    hops_[at(before)] = hops_[at(node)] + 1;
    met_.push_back(before);
  }
}

// Breadth first from the target, no further than to the source: nodes that are nearer are all met
// before. The next source goes on from there.
void Router::measure(NodeId source, NodeId target) {
  begin(target);
  while (hops_[at(source)] == unreached) search_on();
}

WaysTo Router::ways_to(NodeId target) {
  assert(choice_ == RouteChoice::first);
  begin(target);
  while (next_ < met_.size()) search_on();
  WaysTo ways{met_, std::vector<LinkId>(met_.size(), -1)};
  for (std::size_t i = 1; i < met_.size(); ++i) {
    const NodeId node = met_[i];
    for (LinkId link = graph_.first_out(node); link < graph_.first_out(node + 1); ++link) {
      const NodeId after = graph_.links()[at(link)].to;
      if (hops_[at(after)] + 1 != hops_[at(node)]) continue;
      if (after != target && !graph_.forwards(after)) continue;
      ways.next[i] = link;
      break;
    }
  }
  return ways;
}

// Links that lead on from a node on a shortest way.
std::vector<LinkId> Router::choices(NodeId node, NodeId target) {
  std::vector<LinkId> result;
  const auto keep = [&](const auto& leads_on) {
    for (LinkId link = graph_.first_out(node); link < graph_.first_out(node + 1); ++link) {
      if (leads_on(graph_.links()[at(link)])) result.push_back(link);
    }
  };
  keep([&](const NetworkLink& link) { return link.to == target; });
  if (!result.empty()) return result;  // neighbours: nothing to search
  measure(node, target);
  assert(hops_[at(node)] != unreached);
  keep([&](const NetworkLink& link) {
    const NodeId after = hops_[at(link.to)];
    return graph_.forwards(link.to) && after != unreached && after + 1 == hops_[at(node)];
  });
  return result;
}

std::vector<LinkId> Router::route(NodeId source, NodeId target) {
  std::vector<LinkId> route;
  std::size_t rest = at(target);  // what choices have not been made by
  for (NodeId node = source; node != target; node = graph_.links()[at(route.back())].to) {
    const std::vector<LinkId> links = choices(node, target);
    const std::size_t chosen = choice_ == RouteChoice::first ? 0 : rest % links.size();
    rest /= links.size();
    route.push_back(links[chosen]);
  }
  return route;
}

}  // namespace shardsim
