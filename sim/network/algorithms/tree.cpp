#include "sim/network/algorithms/tree.hpp"

#include <algorithm>
#include <bit>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

// Streams of one tree, from the leaves to the root. Gives those that come to the root.
std::vector<Wait> add_up(const Tree& tree, std::uint32_t kind, Schedule& schedule) {
  std::vector<std::int32_t> order = from_the_root(tree);
  std::reverse(order.begin(), order.end());
  std::vector<std::vector<Wait>> received(tree.size());
  for (const std::int32_t rank : order) {
    const std::int32_t parent = tree[at(rank)];
    if (parent == nobody) return received[at(rank)];
    const StreamId id = schedule.add(rank, parent, kind, received[at(rank)]);
    received[at(parent)].push_back({id, Until::same});
  }
  return {};
}

// `at_root`: what the root waits for.
void add_down(const Tree& tree, std::uint32_t kind, const std::vector<Wait>& at_root,
              Schedule& schedule) {
  std::vector<std::vector<Wait>> received(tree.size());
  for (const std::int32_t rank : from_the_root(tree)) {
    const std::int32_t parent = tree[at(rank)];
    if (parent == nobody) {
      received[at(rank)] = at_root;
    } else {
      received[at(rank)] = {{schedule.add(parent, rank, kind, received[at(parent)]), Until::same}};
    }
  }
}

Messages share(std::int64_t trees, Bytes chunk) { return {.parts = trees, .chunk = trees * chunk}; }

// Of every rank that has what it is to have to the one `distance` further on.
Phase binomial_step(std::int64_t ranks, std::int64_t distance, bool is_down) {
  Targets targets(at(ranks), nobody);
  for (std::int64_t rank = 0; rank + distance < ranks; rank += 2 * distance) {
    const std::int64_t from = is_down ? rank : rank + distance;
    targets[at(from)] = static_cast<std::int32_t>(is_down ? rank + distance : rank);
  }
  return {{}, {std::move(targets)}};
}

std::int64_t doublings(std::int64_t ranks) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
}

}  // namespace

Tree chain(std::int64_t ranks) {
  Tree tree;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    tree.push_back(static_cast<std::int32_t>(rank - 1));  // before the first there is nobody
  }
  return tree;
}

// A rank with lowest set bit b is a leaf of the tree of all multiples of b: of its neighbours in
// the tree of all multiples of 2 b it is under the odd one, or, where that is beyond the end, the
// other.
Tree binary_tree(std::int64_t ranks) {
  Tree tree{nobody};
  for (std::int64_t rank = 1; rank < ranks; ++rank) {
    const std::int64_t bit = rank & -rank;
    const std::int64_t below = rank - bit;
    const std::int64_t parent = below | 2 * bit;
    tree.push_back(static_cast<std::int32_t>(parent < ranks ? parent : below));
  }
  return tree;
}

std::vector<Tree> double_tree(std::int64_t ranks) {
  const Tree first = binary_tree(ranks);
  Tree second(first.size(), nobody);
  const auto size = static_cast<std::int32_t>(ranks);
  const auto moved = [&](std::int32_t rank) {
    return size % 2 == 0 ? size - 1 - rank : (rank + 1) % size;
  };
  for (std::int32_t rank = 0; rank < size; ++rank) {
    const std::int32_t parent = first[at(rank)];
    second[at(moved(rank))] = parent == nobody ? nobody : moved(parent);
  }
  return {first, second};
}

std::int64_t height(const Tree& tree) {
  std::vector<std::int64_t> depth(tree.size(), 0);
  std::int64_t deepest = 0;
  for (const std::int32_t rank : from_the_root(tree)) {
    if (tree[at(rank)] != nobody) depth[at(rank)] = depth[at(tree[at(rank)])] + 1;
    deepest = std::max(deepest, depth[at(rank)]);
  }
  return deepest;
}

std::vector<std::int32_t> from_the_root(const Tree& tree) {
  std::vector<std::vector<std::int32_t>> children(tree.size());
  std::vector<std::int32_t> order;
  for (std::size_t rank = 0; rank < tree.size(); ++rank) {
    auto& list = tree[rank] == nobody ? order : children[at(tree[rank])];
    list.push_back(static_cast<std::int32_t>(rank));
  }
  order.reserve(tree.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& next = children[at(order[i])];
    order.insert(order.end(), next.begin(), next.end());
  }
  return order;
}

Schedule tree_broadcast(const std::vector<Tree>& trees, Bytes chunk) {
  Schedule schedule;
  const auto kind = schedule.kind(share(static_cast<std::int64_t>(trees.size()), chunk));
  for (const Tree& tree : trees) add_down(tree, kind, {}, schedule);
  return schedule;
}

Schedule tree_all_reduce(const std::vector<Tree>& trees, Bytes chunk) {
  Schedule schedule;
  const auto kind = schedule.kind(share(static_cast<std::int64_t>(trees.size()), chunk));
  for (const Tree& tree : trees) add_down(tree, kind, add_up(tree, kind, schedule), schedule);
  return schedule;
}

Lanes binomial_broadcast(std::int64_t ranks) {
  Phases phases;
  for (std::int64_t i = doublings(ranks); i-- > 0;) {
    phases.push_back(binomial_step(ranks, std::int64_t{1} << i, /*is_down=*/true));
  }
  return {std::move(phases)};
}

Lanes binomial_all_reduce(std::int64_t ranks) {
  Phases phases;
  for (std::int64_t i = 0; i < doublings(ranks); ++i) {
    phases.push_back(binomial_step(ranks, std::int64_t{1} << i, /*is_down=*/false));
  }
  const Lanes down = binomial_broadcast(ranks);
  phases.insert(phases.end(), down.front().begin(), down.front().end());
  return {std::move(phases)};
}

FlowTime tree_time(std::int64_t levels, std::int64_t trees, Bytes payload, const Way& way,
                   Bytes chunk) {
  const Messages messages = share(trees, chunk);
  return levels * way.latency() +
         (levels + messages.count(payload) - 1) * way.transfer(messages.bytes(payload));
}

FlowTime binomial_time(std::int64_t ranks, Bytes payload, const Way& way) {
  return doublings(ranks) * way.time(payload);
}

}  // namespace shardsim::network
