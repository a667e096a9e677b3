#include "hardware_profiles/network/routes.hpp"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/filtered_graph.hpp>
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

// Ways that end at the target or lead on from what passes on.
struct Forwards {
  const Graph* graph = nullptr;
  std::size_t first_forwarding = 0;  // nodes below only receive
  std::size_t target = 0;

  bool operator()(const Graph::edge_descriptor& edge) const {
    const std::size_t node = source(edge, *graph);
    return node >= first_forwarding || node == target;
  }
};

}  // namespace

struct Router::Reversed {
  Graph graph;
};

Router::Router(const NetworkGraph& graph, RouteChoice choice)
    : graph_(graph), choice_(choice), reversed_(new Reversed{reverse(graph)}) {}

Router::~Router() = default;

void Router::measure(NodeId target) {
  if (measured_ == target) return;
  measured_ = target;
  hops_.assign(at(graph_.nodes()), unreached);
  hops_[at(target)] = 0;
  const bool has_switches = graph_.nodes() > graph_.devices();
  const Graph& graph = reversed_->graph;
  const Forwards forwards{&graph, has_switches ? at(graph_.devices()) : 0, at(target)};
  const boost::filtered_graph<Graph, Forwards> ways(graph, forwards);
  const auto index = get(boost::vertex_index, graph);
  const auto hops = boost::make_iterator_property_map(hops_.begin(), index);
  boost::breadth_first_search(
      ways, at(target),
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(hops, boost::on_tree_edge())))
          .vertex_index_map(index));
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
  measure(target);
  assert(hops_[at(node)] != unreached);
  const bool devices_forward = graph_.nodes() == graph_.devices();
  keep([&](const NetworkLink& link) {
    const NodeId after = hops_[at(link.to)];
    return (devices_forward || !graph_.is_device(link.to)) && after != unreached &&
           after + 1 == hops_[at(node)];
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
