#include "sim/network/algorithms/node_rings.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

// first, first + 1, first - 1, first + 2, ... of n, round.
Ring zigzag(std::int32_t first, std::int32_t n) {
  Ring path;
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t step = i % 2 == 1 ? (i + 1) / 2 : -(i / 2);
    path.push_back((first + step + n) % n);
  }
  return path;
}

// The way of a ring through the members of a node.
Ring way_through(const Ring& members, std::int32_t ring, bool linked_in_pairs, bool is_odd_node) {
  const auto n = static_cast<std::int32_t>(members.size());
  const std::int32_t number = ring % n;
  Ring path;
  if (linked_in_pairs && n % 2 == 0) {
    const bool is_reversed = number >= n / 2;
    path = zigzag(is_reversed ? number - n / 2 : number, n);
    if (is_reversed != is_odd_node) std::reverse(path.begin(), path.end());
  } else {
    path.resize(at(n));
    std::iota(path.begin(), path.end(), number);
    for (std::int32_t& place : path) place %= n;
    if (is_odd_node) std::reverse(path.begin(), path.end());
  }
  for (std::int32_t& place : path) place = members[at(place)];
  return path;
}

Ring reversed(Ring ring) {
  std::reverse(ring.begin(), ring.end());
  return ring;
}

// Takes rings out of the wires, one after the other; keeps the longest list of them.
class WireSearch {
 public:
  explicit WireSearch(const std::vector<std::vector<int>>& wires) : wires_(wires) {
    for (const auto& row : wires_) {
      most_ = std::min(most_, static_cast<std::size_t>(std::accumulate(row.begin(), row.end(), 0)));
    }
    most_ /= 2;  // a ring takes two wires of everyone
  }

  std::vector<Ring> search() {
    begin_ring();
    return best_;
  }

 private:
  [[nodiscard]] bool is_done() const { return best_.size() == most_; }

  void begin_ring() {
    if (found_.size() > best_.size()) best_ = found_;
    if (is_done()) return;
    const Ring before = std::exchange(ring_, {0});
    go_on();
    ring_ = before;
  }

  void go_on() {
    const auto last = at(ring_.back());
    if (ring_.size() == wires_.size()) {
      if (wires_[last][0] == 0) return;
      take(last, 0, 1);
      found_.push_back(ring_);
      begin_ring();
      found_.pop_back();
      take(last, 0, -1);
      return;
    }
    for (std::size_t next = 1; next < wires_.size() && !is_done(); ++next) {
      const auto rank = static_cast<std::int32_t>(next);
      if (wires_[last][next] == 0 || std::find(ring_.begin(), ring_.end(), rank) != ring_.end()) {
        continue;
      }
      take(last, next, 1);
      ring_.push_back(rank);
      go_on();
      ring_.pop_back();
      take(last, next, -1);
    }
  }

  void take(std::size_t a, std::size_t b, int wires) {
    wires_[a][b] -= wires;
    wires_[b][a] -= wires;
  }

  std::vector<std::vector<int>> wires_;  // that are left
  std::size_t most_ = wires_.size();
  Ring ring_;
  std::vector<Ring> found_;
  std::vector<Ring> best_;
};

}  // namespace

std::vector<Ring> rings_of_full_mesh(std::int32_t ranks) {
  if (ranks < 3) return {zigzag(0, ranks)};
  // A zigzag of all but the last, closed over the last. Of an even number of them zigzags turned by
  // half are the same, backwards.
  const std::int32_t turning = ranks - 1;
  const std::int32_t turns = turning % 2 == 0 ? turning / 2 : turning;
  std::vector<Ring> rings;
  for (std::int32_t turn = 0; turn < turns; ++turn) {
    Ring ring = zigzag(turn, turning);
    ring.push_back(turning);
    rings.push_back(ring);
    rings.push_back(reversed(std::move(ring)));
  }
  return rings;
}

std::vector<Ring> rings_of_wires(const std::vector<std::vector<int>>& wires) {
  Ring in_order(wires.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  if (wires.size() < 3) return {in_order};
  std::vector<Ring> rings;
  for (Ring& ring : WireSearch(wires).search()) {
    rings.push_back(ring);
    rings.push_back(reversed(std::move(ring)));
  }
  if (rings.empty()) rings.push_back(std::move(in_order));
  return rings;
}

std::vector<Ring> rings_over_nodes(const std::vector<Ring>& nodes, bool linked_in_pairs) {
  std::size_t fewest = nodes.front().size();
  for (const Ring& members : nodes) fewest = std::min(fewest, members.size());
  std::vector<Ring> rings(fewest);
  for (std::size_t r = 0; r < fewest; ++r) {
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const Ring way = way_through(nodes[node], static_cast<std::int32_t>(r), linked_in_pairs,
                                   /*is_odd_node=*/node % 2 == 1);
      rings[r].insert(rings[r].end(), way.begin(), way.end());
    }
  }
  return rings;
}

Lanes around_rings(const std::vector<GroupRings>& groups, std::int64_t devices,
                   std::int64_t rounds) {
  // Groups whose messages are of one size go together.
  std::map<std::pair<std::int64_t, std::size_t>, std::vector<Targets>> alike;
  for (const GroupRings& group : groups) {
    if (group.ranks < 2) continue;
    std::vector<Targets>& targets = alike[{group.ranks, group.rings.size()}];
    targets.resize(group.rings.size(), Targets(at(devices), nobody));
    for (std::size_t r = 0; r < group.rings.size(); ++r) {
      const Ring& ring = group.rings[r];
      for (std::size_t i = 0; i < ring.size(); ++i) {
        targets[r][at(ring[i])] = ring[(i + 1) % ring.size()];
      }
    }
  }
  Lanes lanes;
  for (auto& [size, targets] : alike) {
    const auto [ranks, rings] = size;
    Phase phase{{.parts = static_cast<std::int64_t>(rings) * ranks, .steps = rounds * (ranks - 1)},
                {}};
    for (Targets& ring : targets) phase.targets.emplace_back(std::move(ring));
    lanes.push_back({std::move(phase)});
  }
  return lanes;
}

}  // namespace shardsim::network
