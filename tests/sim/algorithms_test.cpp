// Collective algorithms: whether every rank ends with all it is to have, and whoever sends has it.
#include "sim/network/algorithms/by_name.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <set>

#include "sim/network/algorithms/collnet.hpp"
#include "sim/network/algorithms/halving_doubling.hpp"
#include "sim/network/algorithms/hierarchical.hpp"
#include "sim/network/algorithms/nvls_tree.hpp"
#include "sim/network/algorithms/pat.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "sim/network/algorithms/torus.hpp"
#include "sim/network/algorithms/tree.hpp"
#include "tests/sim/networks.hpp"

namespace shardsim::network::algorithms_test {
namespace {

using testing::holds;
using testing::some_strides;

// Sends chunks of data as streams say, round by round: in each all messages that wait for nothing
// more: send(stream, message) for each of them, then arrive(stream, message).
template <class Send, class Arrive>
void play(const Schedule& schedule, Bytes payload, Send send, Arrive arrive) {
  std::vector<std::int64_t> done(schedule.streams.size(), 0);
  const auto count = [&](std::size_t id) {
    return schedule.kinds[schedule.streams[id].kind].count(payload);
  };
  const auto is_ready = [&](std::size_t id) {
    const auto waits = schedule.waits_of(schedule.streams[id]);
    return done[id] < count(id) && std::all_of(waits.begin(), waits.end(), [&](const Wait& wait) {
             const auto awaited = static_cast<std::size_t>(wait.stream);
             if (wait.until == Until::previous) return done[awaited] >= done[id];
             if (wait.until == Until::same) return done[awaited] > done[id];
             return done[awaited] == count(awaited);
           });
  };
  while (true) {
    std::vector<std::size_t> round;
    for (std::size_t id = 0; id < done.size(); ++id) {
      if (is_ready(id)) round.push_back(id);
    }
    for (const std::size_t id : round) send(id, done[id]);
    for (const std::size_t id : round) {
      arrive(id, done[id]);
      ++done[id];
    }
    if (round.empty()) break;
  }
  for (std::size_t id = 0; id < done.size(); ++id) RC_ASSERT(done[id] == count(id));
}

// A piece of a rank's part: one for every direction of every lane, which share the payload.
using Piece = std::pair<std::size_t, std::size_t>;  // of which rank, and for which direction

// The direction of every stream: schedule_of() goes by lane, phase, target and sender.
std::vector<std::size_t> directions_of(const Shape& shape, const Lanes& lanes) {
  std::vector<std::size_t> directions;
  std::size_t first = 0;
  for (const Phases& lane : lanes) {
    std::size_t most = 0;
    for (const Phase& phase : lane) {
      for (std::size_t i = 0; i < phase.targets.size(); ++i) {
        for (const std::int32_t target : targets_of(shape, phase.targets[i])) {
          if (target != nobody) directions.push_back(first + i);
        }
      }
      most = std::max(most, phase.targets.size());
    }
    first += most;
  }
  return directions;
}

// Every message carries as many pieces as its size says, which its sender has and its receiver has
// not; if that leaves a choice (in PAT) those of ranks before the sender that are nearest. In the
// end every rank has all, and nothing came twice.
void delivers_all_gather(const Shape& shape, const Lanes& lanes) {
  const Schedule schedule = schedule_of(shape, lanes);
  const std::vector<std::size_t> directions = directions_of(shape, lanes);
  const std::size_t shares = 1 + *std::max_element(directions.begin(), directions.end());
  std::size_t ranks = 1;
  for (const std::int64_t size : shape) ranks *= static_cast<std::size_t>(size);
  std::vector<std::set<Piece>> has(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t share = 0; share < shares; ++share) has[rank].insert({rank, share});
  }
  std::vector<std::vector<Piece>> flying(schedule.streams.size());
  const auto send = [&](std::size_t id, std::int64_t) {
    const Stream& stream = schedule.streams[id];
    const Messages& messages = schedule.kinds[stream.kind];
    const auto pieces = static_cast<std::int64_t>(ranks * shares);
    RC_ASSERT(messages.blocks * pieces % messages.parts == 0);
    const auto room = static_cast<std::size_t>(messages.blocks * pieces / messages.parts);
    const auto& receiver = has[static_cast<std::size_t>(stream.to)];
    flying[id].clear();
    for (const Piece& piece : has[static_cast<std::size_t>(stream.from)]) {
      const bool is_new = receiver.count(piece) == 0 && piece.second == directions[id];
      if (is_new) flying[id].push_back(piece);
    }
    RC_ASSERT(flying[id].size() >= room);
    const auto distance = [&](const Piece& piece) {
      return (static_cast<std::size_t>(stream.from) + ranks - piece.first) % ranks;
    };
    std::sort(flying[id].begin(), flying[id].end(),
              [&](const Piece& a, const Piece& b) { return distance(a) < distance(b); });
    flying[id].resize(room);
  };
  const auto arrive = [&](std::size_t id, std::int64_t) {
    auto& receiver = has[static_cast<std::size_t>(schedule.streams[id].to)];
    for (const Piece& piece : flying[id]) RC_ASSERT(receiver.insert(piece).second);
  };
  play(schedule, Bytes(GiB), send, arrive);
  for (const auto& pieces : has) RC_ASSERT(pieces.size() == ranks * shares);
}

// Backwards in time and space, a reduce-scatter is an all-gather.
Lanes backwards(const Shape& shape, Lanes lanes) {
  for (Phases& lane : lanes) {
    std::reverse(lane.begin(), lane.end());
    for (Phase& phase : lane) {
      for (Target& target : phase.targets) {
        const Targets forward = targets_of(shape, target);
        Targets back(forward.size(), nobody);
        for (std::size_t rank = 0; rank < forward.size(); ++rank) {
          if (forward[rank] != nobody) {
            back[static_cast<std::size_t>(forward[rank])] = static_cast<std::int32_t>(rank);
          }
        }
        target = std::move(back);
      }
    }
  }
  return lanes;
}

struct Moved {
  std::vector<std::set<std::size_t>> heard_of;  // by rank
  std::vector<std::int64_t> received;           // bytes
};

// Of whom every rank can have heard in the end, if messages carry all that their sender knows.
Moved gossip(const Schedule& schedule, std::size_t ranks, Bytes payload) {
  Moved moved{std::vector<std::set<std::size_t>>(ranks), std::vector<std::int64_t>(ranks, 0)};
  for (std::size_t rank = 0; rank < ranks; ++rank) moved.heard_of[rank] = {rank};
  std::vector<std::set<std::size_t>> flying(schedule.streams.size());
  const auto send = [&](std::size_t id, std::int64_t) {
    flying[id] = moved.heard_of[static_cast<std::size_t>(schedule.streams[id].from)];
  };
  const auto arrive = [&](std::size_t id, std::int64_t) {
    const auto to = static_cast<std::size_t>(schedule.streams[id].to);
    moved.heard_of[to].insert(flying[id].begin(), flying[id].end());
    moved.received[to] += schedule.kinds[schedule.streams[id].kind].bytes(payload).count();
  };
  play(schedule, payload, send, arrive);
  return moved;
}

Shape arbitrary_shape() {
  return *rc::gen::container<Shape>(*rc::gen::inRange(1, 4), rc::gen::inRange<std::int64_t>(2, 4));
}

GroupOnNetwork group_of(const Shape& shape) {
  GroupOnNetwork group;
  for (const std::int64_t size : shape) group.ranks *= size;
  group.dimensions = shape;
  group.per_leaf = shape.back();
  return group;
}

}  // namespace

TEST_CASE("an all-gather brings every part everywhere, once") {
  holds(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::int64_t>(2, 20);
    const auto power = std::int64_t{1} << *rc::gen::inRange(1, 6);
    const auto per_node = *rc::gen::inRange<std::int64_t>(2, 6);
    const Shape shape = arbitrary_shape();
    delivers_all_gather({ranks}, ring_all_gather(ranks, some_strides(ranks)));
    delivers_all_gather({power}, doubling_all_gather(power));
    delivers_all_gather({ranks}, pat_all_gather(ranks));
    delivers_all_gather({ranks, per_node}, hierarchical_all_gather(ranks, per_node));
    delivers_all_gather(shape, torus_all_gather(shape));
  }));
}

TEST_CASE("a reduce-scatter is an all-gather backwards") {
  holds(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::int64_t>(2, 20);
    const auto power = std::int64_t{1} << *rc::gen::inRange(1, 6);
    const auto per_node = *rc::gen::inRange<std::int64_t>(2, 6);
    const Shape shape = arbitrary_shape();
    const auto check = [](const Shape& of, const Lanes& lanes) {
      delivers_all_gather(of, backwards(of, lanes));
    };
    check({ranks}, ring_reduce_scatter(ranks, some_strides(ranks)));
    check({power}, halving_reduce_scatter(power));
    check({ranks}, pat_reduce_scatter(ranks));
    check({ranks, per_node}, hierarchical_reduce_scatter(ranks, per_node));
    check(shape, torus_reduce_scatter(shape));
  }));
}

TEST_CASE("after an all-reduce or an all-to-all every rank has heard of all") {
  holds(rc::check([] {
    const Shape shape = arbitrary_shape();
    const GroupOnNetwork group = group_of(shape);
    const auto ranks = static_cast<std::size_t>(group.ranks);
    // A payload that all parts divide.
    const Bytes payload(6 * group.ranks * group.ranks * 1024);
    for (const char* name :
         {"ring", "multi-ring", "hierarchical", "torus", "double-tree", "chain", "binomial-tree"}) {
      const Schedule schedule = expand(name, CollectiveKind::all_reduce, group, {}).schedule();
      for (const auto& known : gossip(schedule, ranks, payload).heard_of) {
        RC_ASSERT(known.size() == ranks);
      }
    }
    for (const char* name : {"pairwise", "torus", "hierarchical"}) {
      const Schedule schedule = expand(name, CollectiveKind::all_to_all, group, {}).schedule();
      for (const auto& known : gossip(schedule, ranks, payload).heard_of) {
        RC_ASSERT(known.size() == ranks);
      }
    }
  }));
}

TEST_CASE("after a reduction by switches every device has heard of all of its group") {
  holds(rc::check([] {
    const auto per_leaf = *rc::gen::inRange<std::int64_t>(2, 5);
    const auto leaves = *rc::gen::inRange<std::int64_t>(2, 6);
    const NetworkGraph graph = fat_tree({per_leaf, leaves}, {1}, testing::wire, {});
    const Bytes payload(6 * per_leaf * leaves * 1024);
    const auto check = [&](const Schedule& schedule, const testing::Groups& groups) {
      const Moved moved = gossip(schedule, static_cast<std::size_t>(graph.nodes()), payload);
      for (const auto& group : groups) {
        for (const NodeId device : group) {
          const auto& known = moved.heard_of[static_cast<std::size_t>(device)];
          for (const NodeId other : group)
            RC_ASSERT(known.contains(static_cast<std::size_t>(other)));
        }
      }
    };
    const testing::Groups groups = testing::arbitrary_groups(graph.devices());
    std::vector<PlacedGroup> alone;
    for (const auto& group : groups) alone.push_back(placed_in_order(graph, group, 1));
    check(collnet_all_reduce(graph, alone), groups);
    check(collnet_all_gather(graph, alone), groups);
    check(collnet_reduce_scatter(graph, alone), groups);
    // All devices, leaf by leaf; of each leaf some are heads.
    const testing::Groups all{testing::all_devices(graph)};
    PlacedGroup nodes = placed_in_order(graph, all.front(), per_leaf);
    const auto heads = *rc::gen::inRange<std::size_t>(1, static_cast<std::size_t>(per_leaf) + 1);
    for (PlacedNode& node : nodes) node.heads.resize(heads);
    check(collnet_all_reduce(graph, {nodes}), all);
    check(nvls_tree_all_reduce(graph, {nodes}), all);
  }));
}

TEST_CASE("after a broadcast every rank has heard of the first") {
  holds(rc::check([] {
    GroupOnNetwork group;
    group.ranks = *rc::gen::inRange<std::int64_t>(2, 40);
    for (const char* name : {"chain", "double-tree", "binomial-tree"}) {
      const Schedule schedule = expand(name, CollectiveKind::broadcast, group, {}).schedule();
      const auto root = static_cast<std::int32_t>(0);
      const auto moved = gossip(schedule, static_cast<std::size_t>(group.ranks), Bytes(4032 * KiB));
      for (const auto& known : moved.heard_of) RC_ASSERT(known.contains(root));
    }
  }));
}

TEST_CASE("an all-reduce moves no more than it must") {
  // What rings and trees are known for: 2 (N - 1) / N of the payload to every rank, or the payload
  // up and down, twice to all but the root of each tree, in all 2 (N - 1).
  const Bytes payload(4032 * KiB);  // which all parts of 2, 7, 8, 9 and 63 ranks divide
  for (const std::int64_t ranks : {2, 7, 8, 9, 63}) {
    const auto total = [&](const char* name) {
      GroupOnNetwork group;
      group.ranks = ranks;
      const auto received = gossip(expand(name, CollectiveKind::all_reduce, group, {}).schedule(),
                                   static_cast<std::size_t>(ranks), payload)
                                .received;
      return std::accumulate(received.begin(), received.end(), std::int64_t{0});
    };
    for (const char* name :
         {"ring", "bidirectional-ring", "double-tree", "chain", "binomial-tree"}) {
      CHECK(static_cast<double>(total(name)) ==
            Approx(2.0 * static_cast<double>((ranks - 1) * payload.count())).epsilon(1e-3));
    }
  }
}

TEST_CASE("of two trees each rank is inside one at most") {
  for (std::int64_t ranks = 2; ranks < 70; ++ranks) {
    const std::vector<Tree> trees = double_tree(ranks);
    std::vector<int> inside(static_cast<std::size_t>(ranks), 0);
    for (const Tree& tree : trees) {
      const std::set<std::int32_t> parents(tree.begin(), tree.end());
      for (const std::int32_t parent : parents) {
        if (parent != nobody) ++inside[static_cast<std::size_t>(parent)];
      }
      // As low as a binary tree with one rank above it can be.
      CHECK(height(tree) ==
            static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(ranks - 1))));
    }
    CHECK(std::count(inside.begin(), inside.end(), 2) <= 1);
  }
}

}  // namespace shardsim::network::algorithms_test
