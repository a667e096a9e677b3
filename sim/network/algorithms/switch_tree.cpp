#include "sim/network/algorithms/switch_tree.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

constexpr std::int32_t unreached = -1;
constexpr NodeId no_node = -1;

// By place of a switch: hops from there to the nearest of some, and the next switch on the way.
struct WaysTo {
  std::vector<std::int32_t> hops;
  std::vector<NodeId> next;
};

}  // namespace

// Between switches, by switches. Searches are kept as long as they are few.
class SwitchTrees::Ways {
 public:
  explicit Ways(const NetworkGraph& graph)
      : graph_(graph), before_(at(graph.nodes() - graph.devices())) {
    for (const NetworkLink& link : graph.links()) {
      if (is_switch(link.from) && is_switch(link.to)) before_[place(link.to)].push_back(link.from);
    }
  }

  [[nodiscard]] std::size_t count() const { return before_.size(); }
  [[nodiscard]] NodeId node(std::size_t place) const {
    return static_cast<NodeId>(place) + graph_.devices();
  }
  [[nodiscard]] std::size_t place(NodeId node) const { return at(node - graph_.devices()); }

  // To which a device is wired.
  [[nodiscard]] std::vector<NodeId> of_device(NodeId device) const {
    std::vector<NodeId> found;
    for (LinkId link = graph_.first_out(device); link < graph_.first_out(device + 1); ++link) {
      const NodeId to = graph_.links()[at(link)].to;
      if (is_switch(to)) found.push_back(to);
    }
    return found;
  }

  [[nodiscard]] const WaysTo& to(const std::vector<NodeId>& targets) {
    const auto found = kept_.find(targets);
    if (found != kept_.end()) return found->second;
    constexpr std::size_t most_kept = std::size_t{1} << 25;
    if (kept_.size() * count() > most_kept) kept_.clear();
    return kept_.emplace(targets, search(targets)).first->second;
  }

 private:
  [[nodiscard]] bool is_switch(NodeId node) const { return !graph_.is_device(node); }

  [[nodiscard]] WaysTo search(const std::vector<NodeId>& targets) const {
    WaysTo ways{std::vector<std::int32_t>(count(), unreached),
                std::vector<NodeId>(count(), no_node)};
    std::vector<NodeId> met = targets;
    for (const NodeId target : targets) ways.hops[place(target)] = 0;
    for (std::size_t i = 0; i < met.size(); ++i) {
      const NodeId node = met[i];
      for (const NodeId before : before_[place(node)]) {
        if (ways.hops[place(before)] != unreached) continue;
        ways.hops[place(before)] = ways.hops[place(node)] + 1;
        ways.next[place(before)] = node;
        met.push_back(before);
      }
    }
    return ways;
  }

  const NetworkGraph& graph_;
  std::vector<std::vector<NodeId>> before_;  // by place: from where links come
  std::map<std::vector<NodeId>, WaysTo> kept_;
};

namespace {

using Leaves = std::vector<NodeId>;

// Links between switches are taken to be there both ways.
template <class Ways>
NodeId root_of(Ways& ways, const Leaves& leaves) {
  std::map<std::vector<NodeId>, std::int64_t> attachments;  // how many leaves hang there
  for (const NodeId leaf : leaves) ++attachments[ways.of_device(leaf)];
  std::vector<std::int32_t> farthest(ways.count(), 0);
  std::vector<std::int64_t> all(ways.count(), 0);
  std::vector<bool> reaches(ways.count(), true);
  for (const auto& [attached, count] : attachments) {
    const WaysTo& to = ways.to(attached);
    for (std::size_t i = 0; i < ways.count(); ++i) {
      reaches[i] = reaches[i] && to.hops[i] != unreached;
      farthest[i] = std::max(farthest[i], to.hops[i]);
      all[i] += count * to.hops[i];
    }
  }
  const auto far = [&](std::size_t i) { return std::tuple(farthest[i], all[i]); };
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < ways.count(); ++i) {
    if (!reaches[i]) continue;
    if (!best.empty() && far(i) < far(best.front())) best.clear();
    if (best.empty() || far(i) == far(best.front())) best.push_back(i);
  }
  if (best.empty()) throw std::range_error("no switch joins the devices of a group");
  return ways.node(best[at(leaves.front()) % best.size()]);
}

// All nodes on the ways from the leaves to the root, by what comes next.
class Union {
 public:
  template <class Ways>
  Union(Ways& ways, const Leaves& leaves, NodeId root) : root_(root) {
    const WaysTo& to_root = ways.to({root});
    for (const NodeId leaf : leaves) {
      NodeId from = leaf;
      NodeId next = no_node;
      for (const NodeId node : ways.of_device(leaf)) {
        const std::int32_t hops = to_root.hops[ways.place(node)];
        if (hops == unreached) continue;
        if (next == no_node || hops < to_root.hops[ways.place(next)]) next = node;
      }
      while (next != no_node && next_.try_emplace(from, next).second) {
        ++children_[next];
        from = next;
        next = from == root ? no_node : to_root.next[ways.place(from)];
      }
    }
  }

  // The next one that adds up; nobody above the root.
  [[nodiscard]] NodeId parent(NodeId node) const {
    if (node == root_) return no_node;
    NodeId next = next_.at(node);
    while (!adds_up(next)) next = next_.at(next);
    return next;
  }
  [[nodiscard]] std::vector<NodeId> switches_that_add_up() const {
    std::vector<NodeId> nodes;
    for (const auto& [node, children] : children_) {
      if (adds_up(node)) nodes.push_back(node);
    }
    return nodes;
  }

 private:
  [[nodiscard]] bool adds_up(NodeId node) const { return children_.at(node) > 1 || node == root_; }

  NodeId root_;
  std::map<NodeId, NodeId> next_;
  std::map<NodeId, std::int64_t> children_;
};

std::vector<std::int64_t> count_leaves(const Tree& parent, std::size_t leaves) {
  std::vector<std::int64_t> below(parent.size(), 0);
  std::fill_n(below.begin(), leaves, 1);
  std::vector<std::int32_t> order = from_the_root(parent);
  std::reverse(order.begin(), order.end());
  for (const std::int32_t place : order) {
    if (parent[at(place)] != nobody) below[at(parent[at(place)])] += below[at(place)];
  }
  return below;
}

}  // namespace

SwitchTrees::SwitchTrees(const NetworkGraph& graph) : ways_(std::make_unique<Ways>(graph)) {}
SwitchTrees::~SwitchTrees() = default;

SwitchTree SwitchTrees::tree(const std::vector<NodeId>& leaves) {
  const Union all(*ways_, leaves, root_of(*ways_, leaves));
  SwitchTree tree;
  tree.nodes = leaves;
  for (const NodeId node : all.switches_that_add_up()) tree.nodes.push_back(node);
  std::map<NodeId, std::int32_t> places;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    places.emplace(tree.nodes[i], static_cast<std::int32_t>(i));
  }
  for (const NodeId node : tree.nodes) {
    const NodeId parent = all.parent(node);
    tree.parent.push_back(parent == no_node ? nobody : places.at(parent));
  }
  tree.leaves_below = count_leaves(tree.parent, leaves.size());
  return tree;
}

}  // namespace shardsim::network
