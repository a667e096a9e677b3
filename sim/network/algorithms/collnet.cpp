#include "sim/network/algorithms/collnet.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "sim/network/algorithms/switch_tree.hpp"

namespace shardsim::network {
namespace {

enum class Half : std::uint8_t { scatters, gathers, both };

// What heads share, of the payload's `heads` parts; of each of these `blocks` of `parts`.
Messages of_head(std::int64_t heads, std::int64_t blocks = 1, std::int64_t parts = 1) {
  return {.blocks = blocks, .parts = heads * parts, .chunk = heads * slice};
}

std::int64_t heads_of(const PlacedGroup& nodes) {
  std::size_t fewest = nodes.front().heads.size();
  for (const PlacedNode& node : nodes) fewest = std::min(fewest, node.heads.size());
  return static_cast<std::int64_t>(fewest);
}

// The tree of one head of every node.
class HeadTree {
 public:
  HeadTree(const PlacedGroup& nodes, std::int64_t head, const SwitchTree& tree, Half half,
           Schedule& schedule)
      : nodes_(nodes),
        head_(at(head)),
        heads_(heads_of(nodes)),
        tree_(tree),
        half_(half),
        schedule_(schedule),
        whole_(schedule.kind(of_head(heads_))),
        received_(tree.nodes.size()) {}

  void add() {
    if (half_ != Half::gathers) gather_from_members();
    go_up();
    go_down();
    if (half_ != Half::scatters) give_to_members();
  }

 private:
  [[nodiscard]] NodeId head_of(const PlacedNode& node) const { return node.heads[head_]; }

  void gather_from_members() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const NodeId member : nodes_[i].members) {
        if (member != head_of(nodes_[i])) add_stream(member, head_of(nodes_[i]), whole_, {}, i);
      }
    }
  }

  void go_up() {
    std::vector<std::int32_t> order = from_the_root(tree_.parent);
    std::reverse(order.begin(), order.end());
    for (const std::int32_t place : order) {
      const std::int32_t parent = tree_.parent[at(place)];
      if (parent == nobody) continue;
      const std::uint32_t kind = half_ == Half::gathers ? parts_below(at(place)) : whole_;
      add_stream(tree_.nodes[at(place)], tree_.nodes[at(parent)], kind, received_[at(place)],
                 at(parent));
    }
  }

  void go_down() {
    for (const std::int32_t place : from_the_root(tree_.parent)) {
      const std::int32_t parent = tree_.parent[at(place)];
      if (parent == nobody) continue;
      received_[at(place)].clear();
      const std::uint32_t kind = half_ == Half::scatters ? parts_below(at(place)) : whole_;
      add_stream(tree_.nodes[at(parent)], tree_.nodes[at(place)], kind, received_[at(parent)],
                 at(place));
    }
  }

  void give_to_members() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const NodeId member : nodes_[i].members) {
        if (member == head_of(nodes_[i])) continue;
        schedule_.add(head_of(nodes_[i]), member, whole_, received_[i]);
      }
    }
  }

  void add_stream(NodeId from, NodeId to, std::uint32_t kind, const std::vector<Wait>& waits,
                  std::size_t receiver) {
    received_[receiver].push_back({schedule_.add(from, to, kind, waits), Until::same});
  }

  [[nodiscard]] std::uint32_t parts_below(std::size_t place) {
    return schedule_.kind(of_head(heads_, tree_.leaves_below[place], std::ssize(nodes_)));
  }

  const PlacedGroup& nodes_;
  std::size_t head_;
  std::int64_t heads_;
  const SwitchTree& tree_;
  Half half_;
  Schedule& schedule_;
  std::uint32_t whole_;
  std::vector<std::vector<Wait>> received_;  // by place in the tree, heads first
};

Schedule over_trees(const NetworkGraph& graph, const std::vector<PlacedGroup>& groups, Half half) {
  Schedule schedule;
  SwitchTrees trees(graph);
  for (const PlacedGroup& nodes : groups) {
    for (std::int64_t head = 0; head < heads_of(nodes); ++head) {
      std::vector<NodeId> leaves;
      for (const PlacedNode& node : nodes) leaves.push_back(node.heads[at(head)]);
      const SwitchTree tree = trees.tree(leaves);
      HeadTree(nodes, head, tree, half, schedule).add();
    }
  }
  return schedule;
}

}  // namespace

Schedule collnet_all_gather(const NetworkGraph& graph, const std::vector<PlacedGroup>& groups) {
  return over_trees(graph, groups, Half::gathers);
}

Schedule collnet_reduce_scatter(const NetworkGraph& graph, const std::vector<PlacedGroup>& groups) {
  return over_trees(graph, groups, Half::scatters);
}

Schedule collnet_all_reduce(const NetworkGraph& graph, const std::vector<PlacedGroup>& groups) {
  return over_trees(graph, groups, Half::both);
}

FlowTime collnet_all_reduce_time(const std::vector<std::int64_t>& below, Bytes payload,
                                 const Way& wire) {
  return tree_time(2 * std::ssize(below), 1, payload, wire);
}

FlowTime collnet_half_time(const std::vector<std::int64_t>& below, Bytes payload, const Way& wire) {
  const auto levels = std::ssize(below);
  FlowTime time = levels * wire.latency() + tree_time(levels, 1, payload, wire);
  for (std::int64_t level = 0; level < levels; ++level) {
    const std::int64_t ranks = level == 0 ? 1 : below[at(level - 1)];
    time += wire.transfer(of_head(1, ranks, below.back()).bytes(payload));
  }
  return time;
}

}  // namespace shardsim::network
