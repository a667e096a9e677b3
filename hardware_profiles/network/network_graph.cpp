#include "hardware_profiles/network/network_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

void check(const NetworkLink& link, const Place& place) {
  const auto fail = [&](const char* what) {
    throw InputError(place,
                     fmt::format("the link from node {} to node {} {}", link.from, link.to, what));
  };
  const double bandwidth = link.wire.bandwidth.count();
  const double latency = link.wire.latency.count();
  if (!(bandwidth > 0) || !std::isfinite(bandwidth)) fail("has no bandwidth");
  if (!(latency >= 0) || !std::isfinite(latency)) fail("has a latency below zero");
}

// Devices in one strongly connected piece reach each other.
void check_reachable(const std::vector<NetworkLink>& links, NodeId nodes, NodeId devices,
                     const Place& place) {
  using Graph = boost::compressed_sparse_row_graph<boost::directedS>;
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  edges.reserve(links.size());
  for (const NetworkLink& link : links) edges.emplace_back(at(link.from), at(link.to));
  const Graph graph(boost::edges_are_sorted, edges.begin(), edges.end(), at(nodes));
  std::vector<std::size_t> piece(at(nodes));
  boost::strong_components(
      graph, boost::make_iterator_property_map(piece.begin(), get(boost::vertex_index, graph)));
  for (NodeId device = 1; device < devices; ++device) {
    if (piece[at(device)] != piece[0]) {
      throw InputError(place, fmt::format("devices 0 and {} do not reach each other", device));
    }
  }
}

}  // namespace

NetworkGraph NetworkBuilder::freeze(const Place& place) && {
  for (const NetworkLink& link : links_) {
    assert(link.from >= 0 && link.from < nodes_ && link.to >= 0 && link.to < nodes_);
    check(link, place);
  }
  std::stable_sort(links_.begin(), links_.end(),
                   [](const NetworkLink& a, const NetworkLink& b) { return a.from < b.from; });
  check_reachable(links_, nodes_, devices_, place);
  NetworkGraph graph;
  graph.devices_ = devices_;
  graph.links_ = std::move(links_);
  graph.first_out_.assign(at(nodes_) + 1, 0);
  for (const NetworkLink& link : graph.links_) ++graph.first_out_[at(link.from) + 1];
  for (std::size_t i = 1; i < graph.first_out_.size(); ++i) {
    graph.first_out_[i] += graph.first_out_[i - 1];
  }
  return graph;
}

}  // namespace shardsim
