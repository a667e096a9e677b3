#include "hardware_profiles/network/reachability.hpp"

#include <algorithm>
#include <vector>

#include "base/index.hpp"

namespace shardsim {
namespace {

class Reachability {
 public:
  explicit Reachability(const NetworkGraph& graph)
      : graph_(graph), first_in_(at(graph.nodes()) + 1, 0), sources_(graph.links().size()) {
    for (const NetworkLink& link : graph.links()) ++first_in_[at(link.to) + 1];
    for (std::size_t i = 1; i < first_in_.size(); ++i) first_in_[i] += first_in_[i - 1];
    std::vector<std::size_t> next(first_in_.begin(), first_in_.end() - 1);
    for (const NetworkLink& link : graph.links()) sources_[next[at(link.to)]++] = link.from;
  }

  // Whether everything goes through the hub: all devices reach it and are reached from it.
  [[nodiscard]] bool all_meet_at(NodeId hub) const {
    const auto missing = [&](const std::vector<bool>& met) {
      const auto devices = met.begin() + graph_.devices();
      return std::find(met.begin(), devices, false) != devices;
    };
    return !missing(reached_from(hub)) && !missing(reaching(hub));
  }

  [[nodiscard]] std::vector<bool> reaching(NodeId target) const {
    return walk(target, [&](NodeId node, auto visit) {
      for (std::size_t i = first_in_[at(node)]; i < first_in_[at(node) + 1]; ++i)
        visit(sources_[i]);
    });
  }

 private:
  [[nodiscard]] std::vector<bool> reached_from(NodeId source) const {
    return walk(source, [&](NodeId node, auto visit) {
      for (LinkId link = graph_.first_out(node); link < graph_.first_out(node + 1); ++link) {
        visit(graph_.links()[at(link)].to);
      }
    });
  }

  template <class Neighbours>
  [[nodiscard]] std::vector<bool> walk(NodeId start, Neighbours neighbours) const {
    std::vector<bool> met(at(graph_.nodes()), false);
    std::vector<NodeId> next = {start};
    met[at(start)] = true;
    while (!next.empty()) {
      const NodeId node = next.back();
      next.pop_back();
      if (node != start && !graph_.forwards(node)) continue;
      neighbours(node, [&](NodeId neighbour) {
        if (met[at(neighbour)]) return;
        met[at(neighbour)] = true;
        next.push_back(neighbour);
      });
    }
    return met;
  }

  const NetworkGraph& graph_;
  std::vector<std::size_t> first_in_;  // by node, in sources_
  std::vector<NodeId> sources_;        // of the links to each node
};

// What forwards at device 0 or next to it: what joins all devices is one of them, or behind one. A
// switch in a node may join its devices alone, and a NIC beside it those of all nodes.
std::vector<NodeId> hubs_of(const NetworkGraph& graph) {
  if (graph.forwards(0)) return {0};
  std::vector<NodeId> hubs;
  for (LinkId link = graph.first_out(0); link < graph.first_out(1); ++link) {
    const NodeId to = graph.links()[at(link)].to;
    if (graph.forwards(to)) hubs.push_back(to);
  }
  return hubs;
}

}  // namespace

std::optional<std::pair<NodeId, NodeId>> find_unreachable(const NetworkGraph& graph) {
  if (graph.devices() < 2) return std::nullopt;
  const Reachability reachability(graph);
  for (const NodeId hub : hubs_of(graph)) {
    if (reachability.all_meet_at(hub)) return std::nullopt;
  }
  for (NodeId target = 0; target < graph.devices(); ++target) {
    const std::vector<bool> reaching = reachability.reaching(target);
    const auto devices = reaching.begin() + graph.devices();
    const auto found = std::find(reaching.begin(), devices, false);
    if (found != devices) {
      return std::pair(static_cast<NodeId>(found - reaching.begin()), target);
    }
  }
  return std::nullopt;
}

}  // namespace shardsim
