#include "hardware_profiles/network/network_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/index.hpp"
#include "hardware_profiles/network/reachability.hpp"

namespace shardsim {
namespace {

void check(const NetworkLink& link, const NodeNames& name, const Place& place) {
  const auto fail = [&](const char* what) {
    throw InputError(
        place, fmt::format("the link from {} to {} {}", name(link.from), name(link.to), what));
  };
  const double bandwidth = link.wire.bandwidth.count();
  const double latency = link.wire.latency.count();
  if (!(bandwidth > 0) || !std::isfinite(bandwidth)) fail("has no bandwidth");
  if (!(latency >= 0) || !std::isfinite(latency)) fail("has a latency below zero");
}

}  // namespace

NetworkGraph NetworkBuilder::freeze(const Place& place, const NodeNames& names) && {
  const NodeNames name = names ? names : [&](NodeId node) {
    return fmt::format("{} {}", node < devices_ ? "device" : "node", node);
  };
  for (const NetworkLink& link : links_) {
    assert(link.from >= 0 && link.from < nodes_ && link.to >= 0 && link.to < nodes_);
    check(link, name, place);
  }
  std::stable_sort(links_.begin(), links_.end(),
                   [](const NetworkLink& a, const NetworkLink& b) { return a.from < b.from; });
  NetworkGraph graph;
  graph.devices_ = devices_;
  graph.devices_forward_ = devices_forward_ || nodes_ == devices_;
  graph.links_ = std::move(links_);
  graph.first_out_.assign(at(nodes_) + 1, 0);
  for (const NetworkLink& link : graph.links_) ++graph.first_out_[at(link.from) + 1];
  for (std::size_t i = 1; i < graph.first_out_.size(); ++i) {
    graph.first_out_[i] += graph.first_out_[i - 1];
  }
  if (const auto apart = find_unreachable(graph)) {
    throw InputError(place,
                     fmt::format("{} does not reach {}", name(apart->first), name(apart->second)));
  }
  return graph;
}

}  // namespace shardsim
