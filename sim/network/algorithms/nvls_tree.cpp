#include "sim/network/algorithms/nvls_tree.hpp"

#include <algorithm>
#include <cassert>

#include "base/index.hpp"
#include "sim/network/algorithms/tree.hpp"

namespace shardsim::network {
namespace {

constexpr std::int64_t halves = 2;

// Of the payload: a half for each tree, and of that one part of so many.
Messages of_half(std::int64_t parts) { return {.parts = halves * parts, .chunk = halves * slice}; }

std::size_t fewest_heads(const PlacedGroup& nodes) {
  std::size_t fewest = nodes.front().heads.size();
  for (const PlacedNode& node : nodes) fewest = std::min(fewest, node.heads.size());
  return fewest;
}

// One tree over the nodes of a group, with half of the payload.
class NvlsTree {
 public:
  NvlsTree(const PlacedGroup& nodes, const Tree& tree, Schedule& schedule)
      : nodes_(nodes),
        tree_(tree),
        heads_(fewest_heads(nodes)),
        schedule_(schedule),
        whole_(schedule.kind(of_half(1))),
        part_(schedule.kind(of_half(static_cast<std::int64_t>(heads_)))),
        received_(nodes.size(), std::vector<std::vector<Wait>>(heads_)) {}

  void add() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) reduce_in(node);
    for (std::size_t head = 0; head < heads_; ++head) go_over_nodes(head);
    for (std::size_t node = 0; node < nodes_.size(); ++node) multicast_in(node);
  }

 private:
  [[nodiscard]] Wait stream(NodeId from, NodeId to, std::uint32_t kind,
                            const std::vector<Wait>& waits) {
    return {schedule_.add(from, to, kind, waits), Until::same};
  }

  void reduce_in(std::size_t node) {
    const NodeId hub = nodes_[node].hub;
    std::vector<Wait> sent;
    for (const NodeId member : nodes_[node].members) {
      sent.push_back(stream(member, hub, whole_, {}));
    }
    for (std::size_t head = 0; head < heads_; ++head) {
      received_[node][head] = {stream(hub, nodes_[node].heads[head], part_, sent)};
    }
  }

  void go_over_nodes(std::size_t head) {
    const auto link = [&](std::int32_t from, std::int32_t to) {
      return stream(nodes_[at(from)].heads[head], nodes_[at(to)].heads[head], part_,
                    received_[at(from)][head]);
    };
    std::vector<std::int32_t> order = from_the_root(tree_);
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      const std::int32_t parent = tree_[at(*node)];
      if (parent != nobody) received_[at(parent)][head].push_back(link(*node, parent));
    }
    for (const std::int32_t node : order) {
      const std::int32_t parent = tree_[at(node)];
      if (parent != nobody) received_[at(node)][head] = {link(parent, node)};
    }
  }

  void multicast_in(std::size_t node) {
    const NodeId hub = nodes_[node].hub;
    std::vector<Wait> sent;
    for (std::size_t head = 0; head < heads_; ++head) {
      sent.push_back(stream(nodes_[node].heads[head], hub, part_, received_[node][head]));
    }
    for (const NodeId member : nodes_[node].members) {
      (void)stream(hub, member, whole_, sent);
    }
  }

  const PlacedGroup& nodes_;
  const Tree& tree_;
  std::size_t heads_;
  Schedule& schedule_;
  std::uint32_t whole_;
  std::uint32_t part_;
  std::vector<std::vector<std::vector<Wait>>> received_;  // by node and head
};

}  // namespace

Schedule nvls_tree_all_reduce(const NetworkGraph&, const std::vector<PlacedGroup>& groups) {
  Schedule schedule;
  for (const PlacedGroup& nodes : groups) {
    for (const Tree& tree : double_tree(std::ssize(nodes))) {
      NvlsTree(nodes, tree, schedule).add();
    }
  }
  return schedule;
}

FlowTime nvls_tree_bound(std::int64_t nodes, std::int64_t heads, Bytes payload, const Way& inside,
                         const Way& across) {
  assert(nodes > 1);
  const std::int64_t part = payload.count() / heads;
  const std::int64_t half_parts = nodes == 2 ? 2 : nodes == 3 ? 3 : 4;  // out of the busiest head
  return std::max(inside.transfer(payload + Bytes(part)),
                  across.transfer(Bytes(half_parts * part / halves)));
}

}  // namespace shardsim::network
