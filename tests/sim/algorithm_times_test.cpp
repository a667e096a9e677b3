// Collective algorithms: simulated times are those of the closed forms where nothing is contended.
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "sim/network/algorithms/collnet.hpp"
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

namespace shardsim::network::algorithm_times_test {
namespace {

using testing::holds;
using testing::some_strides;

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
    RC_ASSERT(on_tree(hierarchical_all_to_all(nodes, per_node)) ==
              hierarchical_all_to_all_time(nodes, per_node, payload, Way(testing::wire, 4),
                                           Way(testing::wire, 2)));
  }));
}

namespace {

// Ranks of the schedule are nodes of the graph.
FlowTime simulated_over_switches(const NetworkGraph& graph, const Schedule& schedule,
                                 Bytes payload) {
  return simulated(graph, testing::all_nodes(graph), schedule, payload,
                   RouteChoice::by_destination);
}

// Devices below a switch of every tier.
std::vector<std::int64_t> below_of(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> below;
  for (const std::int64_t size : sizes) below.push_back(size * (below.empty() ? 1 : below.back()));
  return below;
}

}  // namespace

TEST_CASE("closed forms of trees of switches that reduce are simulated times") {
  holds(rc::check([] {
    const auto sizes = *rc::gen::container<std::vector<std::int64_t>>(
        *rc::gen::inRange(1, 4), rc::gen::inRange<std::int64_t>(2, 5));
    const Bytes payload = arbitrary_payload();
    const NetworkGraph graph =
        fat_tree(sizes, std::vector<std::int64_t>(sizes.size() - 1, 1), testing::wire, {});
    const std::vector<PlacedGroup> groups{
        placed_in_order(graph, testing::all_devices(graph), /*per_node=*/1)};
    const Way hop(testing::wire, 1);
    const auto time = [&](const Schedule& schedule) {
      return simulated_over_switches(graph, schedule, payload);
    };
    const FlowTime half = collnet_half_time(below_of(sizes), payload, hop);
    RC_ASSERT(time(collnet_all_reduce(graph, groups)) ==
              collnet_all_reduce_time(below_of(sizes), payload, hop));
    RC_ASSERT(time(collnet_reduce_scatter(graph, groups)) == half);
    RC_ASSERT(time(collnet_all_gather(graph, groups)) == half);
  }));
}

TEST_CASE("the closed form of an in-switch all-reduce is the simulated time where it holds") {
  // Chunks of 512 KiB at 50 GiB/s take 9.8 us: two latencies of 1 us and 3/N of it are less from 4
  // ranks on.
  holds(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::int64_t>(4, 33);
    const Bytes payload(*rc::gen::inRange<std::int64_t>(2 * MiB, 40 * MiB));
    const auto form = in_switch_all_reduce_time(ranks, payload, testing::wire);
    RC_ASSERT(form.has_value());
    const NetworkGraph hub = switched(ranks, testing::wire, {});
    testing::Groups with_hub{testing::all_devices(hub)};
    with_hub.front().push_back(static_cast<NodeId>(ranks));
    const Seconds time = to_seconds(simulated(hub, with_hub, in_switch_all_reduce(ranks), payload));
    RC_ASSERT(std::abs(time.count() / form->count() - 1) < 1e-9);
  }));
  CHECK(!in_switch_all_reduce_time(3, Bytes(8 * MiB), testing::wire));
  CHECK(!in_switch_all_reduce_time(8, Bytes(MiB), testing::wire));
}

TEST_CASE("switches that reduce: the payload once each way, never slower than a ring when large") {
  for (const auto& sizes : {std::vector<std::int64_t>{4, 2}, {8, 4}, {4, 4, 2}}) {
    const NetworkGraph graph =
        fat_tree(sizes, std::vector<std::int64_t>(sizes.size() - 1, 1), testing::wire, {});
    const std::int64_t ranks = graph.devices();
    const std::vector<PlacedGroup> groups{placed_in_order(graph, testing::all_devices(graph), 1)};
    const Bytes payload(4 * GiB);
    const Traffic traffic =
        testing::traffic_on(graph, testing::all_nodes(graph), collnet_all_reduce(graph, groups),
                            RouteChoice::by_destination);
    std::vector<std::int64_t> carried(graph.links().size(), 0);
    for (const TrafficStream& stream : traffic.streams) {
      const Messages& messages = traffic.kinds[stream.kind];
      for (const Crossing& crossing : traffic.crossings_of(stream)) {
        carried[static_cast<std::size_t>(crossing.link)] +=
            messages.count(payload) * messages.bytes(payload).count();
      }
    }
    for (std::size_t i = 0; i < carried.size(); ++i) {
      const NetworkLink& link = graph.links()[i];
      const bool of_device = graph.is_device(link.from) || graph.is_device(link.to);
      if (of_device) CHECK(carried[i] == payload.count());
      CHECK(carried[i] <= payload.count());
    }
    // 2 (N - 1) / N of the payload, in the limit.
    const FlowTime ring = simulated(graph, {testing::all_devices(graph)},
                                    schedule_of({ranks}, ring_all_reduce(ranks)), payload,
                                    RouteChoice::by_destination);
    const double times = to_seconds(ring).count() / to_seconds(run(traffic, payload)).count();
    const auto n = static_cast<double>(ranks);
    CHECK(times == Approx(2 * (n - 1) / n).epsilon(0.005));
    CHECK(times > 1);
  }
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

}  // namespace shardsim::network::algorithm_times_test
