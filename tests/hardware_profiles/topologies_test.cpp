// Topologies and routes: counts and ways that can be worked out by hand.
#include "hardware_profiles/network/topologies.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "hardware_profiles/network/routes.hpp"

namespace shardsim::topologies_test {
namespace {
using Catch::Matchers::Contains;

const Wire wire{Bandwidth(50e9), Seconds(500e-9)};

std::vector<NodeId> nodes_on(const NetworkGraph& graph, const std::vector<LinkId>& route) {
  std::vector<NodeId> nodes;
  for (const LinkId link : route) nodes.push_back(graph.links()[static_cast<std::size_t>(link)].to);
  return nodes;
}

// How many messages the busiest link carries when every device sends to the one `by` further on.
std::int64_t busiest(const NetworkGraph& graph, RouteChoice choice, NodeId by) {
  Router router(graph, choice);
  std::map<LinkId, std::int64_t> messages;
  std::int64_t most = 0;
  for (NodeId device = 0; device < graph.devices(); ++device) {
    for (const LinkId link : router.route(device, (device + by) % graph.devices())) {
      most = std::max(most, ++messages[link]);
    }
  }
  return most;
}

}  // namespace

TEST_CASE("a ring goes round, a line does not") {
  const NetworkGraph closed = ring(8, wire, {});
  CHECK(closed.nodes() == 8);
  CHECK(closed.links().size() == 16);
  Router router(closed, RouteChoice::first);
  CHECK(nodes_on(closed, router.route(6, 1)) == std::vector<NodeId>{7, 0, 1});
  // Half way round: up from even devices, down from odd ones.
  CHECK(nodes_on(closed, router.route(0, 4)) == std::vector<NodeId>{1, 2, 3, 4});
  CHECK(nodes_on(closed, router.route(1, 5)) == std::vector<NodeId>{0, 7, 6, 5});
  CHECK(router.route(3, 3).empty());

  const NetworkGraph line = torus({8}, {false}, wire, {});
  CHECK(line.links().size() == 14);
  Router along(line, RouteChoice::first);
  CHECK(along.route(6, 1).size() == 5);
  // Two devices have one wire, also where the dimension wraps.
  CHECK(ring(2, wire, {}).links().size() == 2);
}

TEST_CASE("a torus is walked one dimension after the other") {
  const NetworkGraph graph = torus({4, 4, 4}, {true, true, true}, wire, {});
  CHECK(graph.links().size() == 64 * 6);
  Router router(graph, RouteChoice::first);
  // From (0, 0, 0) to (1, 3, 1): up in x, down over the wrap in y, up in z.
  CHECK(nodes_on(graph, router.route(0, 16 + 12 + 1)) == std::vector<NodeId>{16, 28, 29});
}

// Whether all reach each other is looked up at what they meet in. One by one it would be 2^34 steps
// here: the test would not end.
TEST_CASE("a switch may have many devices") {
  constexpr std::int64_t devices = std::int64_t{1} << 17;
  CHECK(switched(devices, wire, {}).links().size() == 2 * devices);
}

TEST_CASE("switches pass on, devices do not") {
  const NetworkGraph graph = switched(8, wire, {});
  CHECK(graph.nodes() == 9);
  CHECK(graph.links().size() == 16);
  Router router(graph, RouteChoice::first);
  CHECK(nodes_on(graph, router.route(2, 5)) == std::vector<NodeId>{8, 5});

  // Devices 0 and 1 have a wire, 1 and 2 have one, all are at a switch: from 0 to 2 over the switch
  // although the way over device 1 has as many hops, and is there first.
  NetworkBuilder builder(3);
  builder.connect(0, 1, wire);
  builder.connect(1, 2, wire);
  const NodeId hub = builder.add_switches(1);
  for (NodeId device = 0; device < 3; ++device) builder.connect(device, hub, wire);
  const NetworkGraph mixed = std::move(builder).freeze({});
  Router through(mixed, RouteChoice::first);
  CHECK(nodes_on(mixed, through.route(0, 2)) == std::vector<NodeId>{hub, 2});
  CHECK(nodes_on(mixed, through.route(0, 1)) == std::vector<NodeId>{1});
}

TEST_CASE("a full mesh has a wire for every pair") {
  const NetworkGraph graph = full(8, wire, {});
  CHECK(graph.links().size() == 56);
  CHECK(busiest(graph, RouteChoice::first, 3) == 1);
}

TEST_CASE(
    "fat trees: a tree of k-port switches holds k^3 / 4 devices and has as many wires on each "
    "tier") {
  // Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, with k = 4: 16 devices, 8 edge, 8 aggregation and
  // 4 core switches.
  const NetworkGraph graph = fat_tree({2, 2, 4}, {1, 1}, wire, {});
  CHECK(graph.devices() == 16);
  CHECK(graph.nodes() == 16 + 8 + 8 + 4);
  CHECK(graph.links().size() == 3U * 2 * 16);
  Router router(graph, RouteChoice::by_destination);
  CHECK(router.route(0, 1).size() == 2);
  CHECK(router.route(0, 2).size() == 4);
  CHECK(router.route(0, 15).size() == 6);
  // Shifts by any distance are free of contention (Zahavi 2012).
  for (NodeId by = 1; by < 16; ++by) CHECK(busiest(graph, RouteChoice::by_destination, by) == 1);
}

TEST_CASE("with an oversubscription of two, two messages share a wire") {
  const NetworkGraph graph = fat_tree({4, 4}, {2}, wire, {});
  CHECK(graph.nodes() == 16 + 4 + 2);
  CHECK(graph.links().size() == 2U * (16 + 8));
  CHECK(busiest(graph, RouteChoice::by_destination, 4) == 2);
}

TEST_CASE("a dragonfly's groups reach each other over one global wire") {
  // Kim et al., ISCA 2008, figure 5: p = h = 2, a = 4 gives 9 groups and 72 devices.
  const NetworkGraph graph = dragonfly({/*routers=*/4, /*devices=*/2, /*global=*/2}, wire, {});
  CHECK(graph.devices() == 72);
  CHECK(graph.nodes() == 72 + 36);
  CHECK(graph.links().size() == 2U * 72 + 9 * 4 * 3 + 9 * 8);
  Router router(graph, RouteChoice::first);
  std::set<std::size_t> lengths;
  for (NodeId target = 1; target < 72; ++target) lengths.insert(router.route(0, target).size());
  // Up and down, one hop in either group at most, and the wire between them.
  CHECK(lengths == std::set<std::size_t>{2, 3, 4, 5});
}

TEST_CASE("networks that cannot be are refused") {
  const Place place{"machine", ""};
  CHECK_THROWS_WITH(ring(0, wire, place), Contains("a size of 0: at least 1 is needed"));
  CHECK_THROWS_WITH(ring(1'000'000'000, wire, place), Contains("1000000000 nodes are more than"));
  CHECK_THROWS_WITH(torus({1 << 20, 1 << 20, 1 << 30}, {true, true, true}, wire, place),
                    Contains("nodes are more than"));
  CHECK_THROWS_WITH(full(100'000, wire, place), Contains("9999900000 links are more than"));
  CHECK_THROWS_WITH(fat_tree({5, 4}, {2}, wire, place),
                    Contains("an oversubscription of 2 does not divide 5 wires"));
  CHECK_THROWS_WITH(ring(4, {Bandwidth(0), Seconds(0)}, place), Contains("has no bandwidth"));
  CHECK_THROWS_WITH(ring(4, {Bandwidth(1), Seconds(-1)}, place),
                    Contains("the link from device 0 to device 1 has a latency below zero"));
  NetworkBuilder pieces(4);
  pieces.connect(0, 1, wire);
  pieces.connect(2, 3, wire);
  CHECK_THROWS_WITH(std::move(pieces).freeze(place), Contains("device 2 does not reach device 0"));
  NetworkBuilder one_way(2);
  one_way.connect_one_way(0, 1, wire);
  CHECK_THROWS_WITH(std::move(one_way).freeze(place), Contains("device 1 does not reach device 0"));
  // Device 0's first switch joins two devices, its second all; switches of two each join all.
  const auto joined_by = [](NodeId devices, const std::vector<std::vector<NodeId>>& switches) {
    NetworkBuilder builder(devices);
    for (const std::vector<NodeId>& joined : switches) {
      const NodeId here = builder.add_switches(1);
      for (const NodeId device : joined) builder.connect(device, here, wire);
    }
    return builder;
  };
  CHECK_NOTHROW(joined_by(4, {{0, 1}, {2, 3}, {0, 1, 2, 3}}).freeze(place));
  CHECK_NOTHROW(joined_by(3, {{0, 1}, {0, 2}, {1, 2}}).freeze(place));
  CHECK_THROWS_WITH(joined_by(4, {{0, 1}, {2, 3}, {0, 1, 2}}).freeze(place),
                    Contains("device 3 does not reach device 0"));
  // A line of devices beside a switch: devices do not pass on what is not for them.
  const auto line = [](bool devices_forward) {
    NetworkBuilder builder(3);
    builder.add_switches(1);
    builder.connect(0, 1, wire);
    builder.connect(1, 2, wire);
    if (devices_forward) builder.let_devices_forward();
    return builder;
  };
  CHECK_THROWS_WITH(line(false).freeze(place), Contains("device 2 does not reach device 0"));
  const NetworkGraph through_devices = line(true).freeze(place);
  Router router(through_devices, RouteChoice::first);
  CHECK(nodes_on(through_devices, router.route(0, 2)) == std::vector<NodeId>{1, 2});
}

}  // namespace shardsim::topologies_test
