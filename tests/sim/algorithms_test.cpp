// Collective algorithms: whether every rank ends with all it is to have, and whether simulated
// times are those of the closed forms where nothing is contended.
#include "sim/network/algorithms.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <set>

#include "sim/network/algorithms/halving_doubling.hpp"
#include "sim/network/algorithms/hierarchical.hpp"
#include "sim/network/algorithms/in_switch.hpp"
#include "sim/network/algorithms/pairwise.hpp"
#include "sim/network/algorithms/pat.hpp"
#include "sim/network/algorithms/permute.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "sim/network/algorithms/torus.hpp"
#include "sim/network/algorithms/tree.hpp"
#include "tests/sim/networks.hpp"

namespace shardsim::network {
namespace {

using testing::holds;

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

Strides some_strides(std::int64_t ranks) {
  Strides all = all_strides(ranks);
  all.resize(static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(1, std::ssize(all) + 1)));
  return all;
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
    for (const char* name : {"pairwise", "torus"}) {
      const Schedule schedule = expand(name, CollectiveKind::all_to_all, group, {}).schedule();
      for (const auto& known : gossip(schedule, ranks, payload).heard_of) {
        RC_ASSERT(known.size() == ranks);
      }
    }
  }));
}

TEST_CASE("an all-reduce moves no more than it must") {
  // What rings and trees are known for: 2 (N - 1) / N of the payload to every rank, or the payload
  // up and down, twice to all but the root of each tree, in all 2 (N - 1).
  const Bytes payload(64 * 63 * 1024);
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

namespace {

FlowTime simulated(const NetworkGraph& graph, const testing::Groups& groups,
                   const Schedule& schedule, Bytes payload,
                   RouteChoice choice = RouteChoice::first) {
  return run(testing::traffic_on(graph, groups, schedule, choice), payload);
}

FlowTime simulated(const NetworkGraph& graph, const Shape& shape, const Lanes& lanes,
                   Bytes payload) {
  return simulated(graph, {testing::all_devices(graph)}, schedule_of(shape, lanes), payload);
}

Bytes arbitrary_payload() { return Bytes(*rc::gen::inRange<std::int64_t>(1, 40 * MiB)); }

}  // namespace

TEST_CASE("closed forms are simulated times on full meshes and switches") {
  holds(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::int64_t>(2, 17);
    const auto power = std::int64_t{1} << *rc::gen::inRange(1, 5);
    const Bytes payload = arbitrary_payload();
    const bool is_full = *rc::gen::arbitrary<bool>();
    const auto network = [&](std::int64_t devices) {
      return is_full ? full(devices, testing::wire, {}) : switched(devices, testing::wire, {});
    };
    const Way way(testing::wire, is_full ? 1 : 2);
    const auto time = [&](std::int64_t devices, const Lanes& lanes) {
      return simulated(network(devices), {devices}, lanes, payload);
    };
    RC_ASSERT(time(ranks, ring_all_gather(ranks)) == ring_time(ranks, 1, payload, way));
    RC_ASSERT(time(ranks, ring_reduce_scatter(ranks)) == ring_time(ranks, 1, payload, way));
    RC_ASSERT(time(ranks, ring_all_reduce(ranks)) == 2 * ring_time(ranks, 1, payload, way));
    RC_ASSERT(time(power, doubling_all_gather(power)) == halving_time(power, payload, way));
    RC_ASSERT(time(power, halving_doubling_all_reduce(power)) ==
              2 * halving_time(power, payload, way));
    RC_ASSERT(time(ranks, pat_all_gather(ranks)) == pat_time(ranks, payload, way));
    RC_ASSERT(time(ranks, pat_reduce_scatter(ranks)) == pat_time(ranks, payload, way));
    RC_ASSERT(time(ranks, pairwise_all_to_all(ranks)) == pairwise_time(ranks, payload, way));
    RC_ASSERT(time(ranks, binomial_broadcast(ranks)) == binomial_time(ranks, payload, way));
    RC_ASSERT(time(power, binomial_all_reduce(power)) == 2 * binomial_time(power, payload, way));
    RC_ASSERT(time(ranks, permute(ranks, {{0, ranks - 1}})) == way.time(payload));
  }));
}

TEST_CASE("closed forms of several rings, trees and switches that add up are simulated times") {
  holds(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::int64_t>(2, 17);
    const Bytes payload = arbitrary_payload();
    const NetworkGraph mesh = full(ranks, testing::wire, {});
    const testing::Groups all{testing::all_devices(mesh)};
    const Way way(testing::wire, 1);
    const Strides strides = some_strides(ranks);
    RC_ASSERT(simulated(mesh, {ranks}, ring_all_gather(ranks, strides), payload) ==
              ring_time(ranks, std::ssize(strides), payload, way));
    RC_ASSERT(simulated(mesh, {ranks}, ring_all_reduce(ranks, strides), payload) ==
              2 * ring_time(ranks, std::ssize(strides), payload, way));
    for (const Tree& tree : {chain(ranks), binary_tree(ranks)}) {
      RC_ASSERT(simulated(mesh, all, tree_broadcast({tree}), payload) ==
                tree_time(height(tree), 1, payload, way));
      RC_ASSERT(simulated(mesh, all, tree_all_reduce({tree}), payload) ==
                tree_time(2 * height(tree), 1, payload, way));
    }
    const NetworkGraph hub = switched(ranks, testing::wire, {});
    testing::Groups with_hub{testing::all_devices(hub)};
    with_hub.front().push_back(static_cast<NodeId>(ranks));
    RC_ASSERT(simulated(hub, with_hub, in_switch_all_gather(ranks), payload) ==
              in_switch_time(ranks, payload, way));
    RC_ASSERT(simulated(hub, with_hub, in_switch_reduce_scatter(ranks), payload) ==
              in_switch_time(ranks, payload, way));
  }));
}

TEST_CASE("closed forms on tori and fat trees are simulated times") {
  holds(rc::check([] {
    const auto axes = *rc::gen::inRange<std::int64_t>(1, 4);
    const auto size = *rc::gen::inRange<std::int64_t>(3, 6);
    const Bytes payload = arbitrary_payload();
    const Shape shape(static_cast<std::size_t>(axes), size);
    const NetworkGraph graph =
        torus(shape, std::vector<bool>(static_cast<std::size_t>(axes), true), testing::wire, {});
    const Way way(testing::wire, 1);
    const FlowTime gather = torus_all_gather_time(axes, size, payload, way);
    RC_ASSERT(simulated(graph, shape, torus_all_gather(shape), payload) == gather);
    RC_ASSERT(simulated(graph, shape, torus_reduce_scatter(shape), payload) == gather);
    RC_ASSERT(simulated(graph, shape, torus_all_reduce(shape), payload) == 2 * gather);
    RC_ASSERT(simulated(graph, shape, torus_all_to_all(shape), payload) ==
              torus_all_to_all_time(axes, size, payload, way));
    const auto nodes = *rc::gen::inRange<std::int64_t>(2, 6);
    const auto per_node = *rc::gen::inRange<std::int64_t>(2, 6);
    const NetworkGraph tree = fat_tree({per_node, nodes}, {1}, testing::wire, {});
    const FlowTime two_levels =
        hierarchical_time(nodes, per_node, payload, Way(testing::wire, 4), Way(testing::wire, 2));
    const auto on_tree = [&](const Lanes& lanes) {
      return simulated(tree, {testing::all_devices(tree)}, schedule_of({nodes, per_node}, lanes),
                       payload, RouteChoice::by_destination);
    };
    RC_ASSERT(on_tree(hierarchical_all_gather(nodes, per_node)) == two_levels);
    RC_ASSERT(on_tree(hierarchical_all_reduce(nodes, per_node)) == 2 * two_levels);
  }));
}

TEST_CASE("an in-switch all-reduce takes its bytes both ways, and little more") {
  // 8 GB over 8 ranks, 1 GB/s: 9 GB each way; of the 15,259 chunks some wait at either end.
  const Wire wire{Bandwidth(1e9), Seconds(1e-9)};
  const NetworkGraph graph = switched(8, wire, {});
  testing::Groups groups{testing::all_devices(graph)};
  groups.front().push_back(8);
  const double time =
      to_seconds(simulated(graph, groups, in_switch_all_reduce(8), Bytes(8'000'000'000))).count();
  CHECK(time > 9.0);
  CHECK(time < 9.0 * 1.01);
}

}  // namespace shardsim::network
