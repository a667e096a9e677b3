// Collectives as flows: against closed forms where nothing is contended, folded against unfolded
// everywhere.
#include "sim/network/traffic.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "hardware_profiles/network/topologies.hpp"
#include "sim/network/algorithms/halving_doubling.hpp"
#include "sim/network/algorithms/pairwise.hpp"
#include "sim/network/algorithms/ring.hpp"

namespace shardsim::network {
namespace {

using Groups = std::vector<std::vector<NodeId>>;

const Wire wire{Bandwidth(50.0 * GiB), Seconds(500e-9)};

void holds(bool passed) { CHECK(passed); }

std::vector<NodeId> all_devices(const NetworkGraph& graph) {
  std::vector<NodeId> devices(static_cast<std::size_t>(graph.devices()));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

Traffic traffic_on(const NetworkGraph& graph, const Groups& groups, const Phases& phases,
                   RouteChoice choice = RouteChoice::first) {
  Router router(graph, choice);
  return traffic_of(graph, router, groups, phases);
}

// steps * (latency + bytes / bandwidth), each step rounded up to a femtosecond.
FlowTime steps_of(std::int64_t steps, Bytes bytes, Seconds latency) {
  return steps * (round_up_to_flow_time(latency) + round_up_to_flow_time(bytes / wire.bandwidth));
}

}  // namespace

TEST_CASE("a ring all-reduce takes what its formula says") {
  // 1 GiB over 1024 devices on 50 GiB/s, 500 ns: 2046 steps of 1 MiB, 40,983,938 ns.
  const NetworkGraph graph = ring(1024, wire, {});
  const Phases phases = ring_all_reduce(1024, Bytes(GiB));
  const Traffic traffic = traffic_on(graph, {all_devices(graph)}, phases);
  CHECK(run(traffic) == steps_of(2046, Bytes(MiB), wire.latency));
  CHECK(run(traffic).count() / 1'000'000 == 40'983'937);  // in ns, and half of one
  const Traffic folded = fold(traffic);
  CHECK(folded.ranks == std::vector<std::int64_t>{1024});
  CHECK(run(folded) == run(traffic));
}

TEST_CASE("partners of a full mesh do not disturb each other") {
  const NetworkGraph graph = full(8, wire, {});
  const Groups group{all_devices(graph)};
  // 2 (P/2 + P/4 + P/8) in 6 steps.
  const Bytes payload(8 * MiB);
  CHECK(run(traffic_on(graph, group, halving_doubling_all_reduce(8, payload))) ==
        steps_of(2, Bytes(4 * MiB), wire.latency) + steps_of(2, Bytes(2 * MiB), wire.latency) +
            steps_of(2, Bytes(MiB), wire.latency));
  CHECK(run(traffic_on(graph, group, pairwise_all_to_all(8, payload))) ==
        steps_of(7, Bytes(MiB), wire.latency));
}

TEST_CASE("messages that go further share links on their way") {
  // On a ring of 8 every link carries the messages of four devices to those four further on; they
  // go both ways round, each from every other device: two on a link, four hops of latency.
  const NetworkGraph graph = ring(8, wire, {});
  const Phases phases{{1, Bytes(MiB), shift(8, 4)}};
  CHECK(run(traffic_on(graph, {all_devices(graph)}, phases)) ==
        steps_of(1, Bytes(2 * MiB), 4.0 * wire.latency));
}

TEST_CASE("groups that share links contend") {
  // Four groups of two across a fat tree with half as many wires up as down: two messages a wire.
  const NetworkGraph graph = fat_tree({4, 2}, {2}, wire, {});
  const Groups one{{0, 4}};
  const Groups four{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  const Phases phases = ring_all_gather(2, Bytes(2 * MiB));
  const auto choice = RouteChoice::by_destination;
  CHECK(run(traffic_on(graph, one, phases, choice)) == steps_of(1, Bytes(MiB), 4.0 * wire.latency));
  const Traffic all = traffic_on(graph, four, phases, choice);
  CHECK(run(all) == steps_of(1, Bytes(2 * MiB), 4.0 * wire.latency));
  CHECK(fold(all).ranks.size() == 1);
}

TEST_CASE("more hops than asked for are refused") {
  // 7 phases of 8 messages, of 1 + 2 + 3 + 4 + 3 + 2 + 1 hops.
  const NetworkGraph graph = ring(8, wire, {});
  Router router(graph, RouteChoice::first);
  const Groups group{all_devices(graph)};
  const Phases phases = pairwise_all_to_all(8, Bytes(MiB));
  CHECK(traffic_of(graph, router, group, phases, 8 * 16).crossings.size() == 8 * 16);
  CHECK_THROWS_WITH(traffic_of(graph, router, group, phases, 8 * 16 - 1),
                    Catch::Contains("more than 127 hops of messages in its 7 phases"));
}

TEST_CASE("a rank that is done early waits for what it has to receive") {
  // Device 0 sends to 1 over a wire that is a fourth as fast as the others: who depends on it is
  // late, step by step.
  NetworkBuilder builder(3);
  const Wire slow{wire.bandwidth / 4.0, wire.latency};
  builder.connect_one_way(0, 1, slow);
  builder.connect_one_way(1, 2, wire);
  builder.connect_one_way(2, 0, wire);
  const NetworkGraph graph = std::move(builder).freeze({});
  const Traffic traffic = traffic_on(graph, {{0, 1, 2}}, ring_all_gather(3, Bytes(3 * MiB)));
  // Both steps of device 0 go over the slow wire, one after the other.
  CHECK(run(traffic) == steps_of(2, Bytes(4 * MiB), wire.latency));
}

namespace {

NetworkGraph arbitrary_network() {
  const auto sizes = [](int dims) {
    return *rc::gen::container<std::vector<std::int64_t>>(dims,
                                                          rc::gen::inRange<std::int64_t>(2, 5));
  };
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return ring(*rc::gen::inRange(2, 17), wire, {});
    case 1: {
      const int dims = *rc::gen::inRange(1, 4);
      return torus(sizes(dims),
                   *rc::gen::container<std::vector<bool>>(dims, rc::gen::arbitrary<bool>()), wire,
                   {});
    }
    case 2:
      return switched(*rc::gen::inRange(2, 17), wire, {});
    case 3:
      return dragonfly({*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 3), 1}, wire, {});
    default:
      return fat_tree({4, *rc::gen::inRange(2, 5), *rc::gen::inRange(1, 4)},
                      {*rc::gen::element(1, 2, 4), 1}, wire, {});
  }
}

// Groups of one size: devices that follow each other, or that are as far apart as possible.
Groups arbitrary_groups(NodeId devices) {
  std::vector<NodeId> sizes;
  for (NodeId size = 2; size <= devices; ++size) {
    if (devices % size == 0) sizes.push_back(size);
  }
  const NodeId size = *rc::gen::elementOf(sizes);
  const bool strided = *rc::gen::arbitrary<bool>();
  Groups groups(static_cast<std::size_t>(devices / size));
  for (NodeId device = 0; device < devices; ++device) {
    const NodeId group = strided ? device % (devices / size) : device / size;
    groups[static_cast<std::size_t>(group)].push_back(device);
  }
  return groups;
}

Phases arbitrary_phases(std::int64_t ranks) {
  const Bytes payload(*rc::gen::inRange<std::int64_t>(1, 100 * MiB));
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return ring_all_reduce(ranks, payload);
    case 1:
      return pairwise_all_to_all(ranks, payload);
    default:
      return can_halve(ranks) ? halving_doubling_all_reduce(ranks, payload)
                              : ring_reduce_scatter(ranks, payload);
  }
}

}  // namespace

TEST_CASE("folded and unfolded take the same time, to the femtosecond") {
  holds(rc::check([] {
    const NetworkGraph graph = arbitrary_network();
    const Groups groups = arbitrary_groups(graph.devices());
    const Phases phases = arbitrary_phases(static_cast<std::int64_t>(groups.front().size()));
    const auto choice = *rc::gen::element(RouteChoice::first, RouteChoice::by_destination);
    const Traffic traffic = traffic_on(graph, groups, phases, choice);
    const Traffic folded = fold(traffic);
    RC_CLASSIFY(folded.ranks.size() < traffic.ranks.size());
    RC_ASSERT(run(folded) == run(traffic));
    RC_ASSERT(std::accumulate(folded.ranks.begin(), folded.ranks.end(), std::int64_t{0}) ==
              graph.devices());
  }));
}

}  // namespace shardsim::network
