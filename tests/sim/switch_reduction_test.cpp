// Trees of switches that reduce, on networks and on machines with a profile.
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "hardware_profiles/network/machine_graph.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/network/algorithms/collnet.hpp"
#include "sim/network/algorithms/nvls_tree.hpp"
#include "sim/network/algorithms/switch_tree.hpp"
#include "tests/sim/networks.hpp"

namespace shardsim::network {
namespace {

using Catch::Contains;
using testing::holds;

const std::string with_sharp = SHARDSIM_SOURCE_DIR "/examples/machines/dgx-h100-sharp.json";

// Of the profile, without latencies and without what protocols and reductions lose.
Machine sharp_machine(std::int64_t devices) {
  Machine machine = make_machine(load_profile(with_sharp, {}), devices, std::nullopt, {});
  auto& cluster = std::get<ClusterProfile>(machine.profile.network);
  cluster.scale_up.latency.value = cluster.scale_out->latency.value = Seconds(0);
  cluster.scale_out->reduction->efficiency.value = cluster.scale_out->efficiency.value;
  return machine;
}

struct Asked {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes payload{4 * GiB};
  bool one_of_each_node = false;
  Folding folding = Folding::folded;
};

CostBreakdown flow_cost(const Machine& machine, const char* algorithm, const Asked& asked = {}) {
  const Mesh mesh({{"node", machine.nodes}, {"device", machine.devices / machine.nodes}});
  const Placement placement(mesh, machine, collective_models::flows);
  Collective collective;
  collective.kind = asked.kind;
  collective.payload = asked.payload;
  collective.axes = {mesh.whole(0)};
  if (!asked.one_of_each_node) collective.axes.push_back(mesh.whole(1));
  CostOptions options;
  options.folding = asked.folding;
  options.told = {{asked.kind, {}, algorithm, "", {"", "/algorithm"}, {}}};
  return collective_cost(placement, collective, options);
}

constexpr double nic = 0.97 * 50e9;
constexpr double nvlink = 0.824 * 450e9;

}  // namespace

TEST_CASE("a tree over all of a fat tree has its switches, and spines by number") {
  // fat-tree(4x2): devices 0-7, leaf switches 8 and 9, spines 10 to 13.
  const NetworkGraph graph = fat_tree({4, 2}, {1}, testing::wire, {});
  SwitchTrees trees(graph);
  const SwitchTree first = trees.tree({0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(first.nodes == std::vector<NodeId>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(first.parent == Tree{8, 8, 8, 8, 9, 9, 9, 9, 10, 10, nobody});
  CHECK(first.leaves_below == std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 8});
  CHECK(trees.tree({2, 3, 6, 7}).nodes.back() == 12);
  CHECK(trees.tree({5, 6, 1, 2}).nodes.back() == 11);
  // Under one leaf there is nothing above it; one device of a leaf passes through.
  CHECK(trees.tree({0, 2}).nodes == std::vector<NodeId>{0, 2, 8});
  const SwitchTree across = trees.tree({0, 4});
  CHECK(across.nodes.size() == 3);
  CHECK(across.parent == Tree{2, 2, nobody});
}

TEST_CASE("groups that share leaf switches have spines of their own") {
  // fat-tree(4x3), a device of each leaf to a group: as many spines, and no wire for two groups.
  const NetworkGraph graph = fat_tree({4, 3}, {1}, testing::wire, {});
  std::vector<PlacedGroup> groups;
  for (NodeId first = 0; first < 4; ++first) {
    groups.push_back(placed_in_order(graph, {first, first + 4, first + 8}, 1));
  }
  const auto time = [&](const std::vector<PlacedGroup>& of) {
    return run(testing::traffic_on(graph, testing::all_nodes(graph), collnet_all_reduce(graph, of),
                                   RouteChoice::by_destination),
               Bytes(16 * MiB));
  };
  CHECK(time(groups) == time({groups.front()}));
}

TEST_CASE("devices that no switch joins have no tree") {
  const NetworkGraph graph = ring(4, testing::wire, {});
  CHECK_THROWS_AS(SwitchTrees(graph).tree({0, 1}), std::range_error);
}

TEST_CASE("reductions by switches take the same time folded and unfolded") {
  holds(rc::check([] {
    const auto per_leaf = *rc::gen::inRange<std::int64_t>(2, 5);
    const auto leaves = *rc::gen::inRange<std::int64_t>(2, 5);
    const NetworkGraph graph =
        fat_tree({per_leaf, leaves}, {*rc::gen::elementOf(std::vector<std::int64_t>{1, per_leaf})},
                 testing::wire, {});
    std::vector<PlacedGroup> groups;
    for (const auto& group : testing::arbitrary_groups(graph.devices())) {
      groups.push_back(placed_in_order(graph, group, 1));
    }
    const PlacedGroup nodes = placed_in_order(graph, testing::all_devices(graph), per_leaf);
    const Bytes payload(*rc::gen::inRange<std::int64_t>(1, 8 * MiB));
    for (const Schedule& schedule :
         {collnet_all_reduce(graph, groups), collnet_all_gather(graph, groups),
          collnet_reduce_scatter(graph, groups), collnet_all_reduce(graph, {nodes}),
          nvls_tree_all_reduce(graph, {nodes})}) {
      const Traffic traffic = testing::traffic_on(graph, testing::all_nodes(graph), schedule,
                                                  RouteChoice::by_destination);
      const FlowTime unfolded = run(traffic, payload);
      RC_ASSERT(run(fold(traffic), payload) == unfolded);
      RC_ASSERT(latency_of(traffic, payload) <= unfolded);
    }
  }));
}

TEST_CASE("a rail whose switches reduce carries the payload once") {
  // One GPU of each node in 8 groups on 8 rails: P / NIC; rings would take 2 * 3/4 P. Of 8192
  // chunks 1 waits more in the rail's only switch.
  const Machine machine = sharp_machine(32);
  const double payload = 4.0 * GiB;
  const CostBreakdown cost = flow_cost(machine, "collnet", {.one_of_each_node = true});
  CHECK(cost.algorithm == "collnet");
  CHECK(cost.transfer.count() == Approx(payload / nic).epsilon(1e-3));
  const CostBreakdown ring = flow_cost(machine, "ring", {.one_of_each_node = true});
  CHECK(ring.transfer.count() / cost.transfer.count() == Approx(1.5).epsilon(1e-3));
  CHECK(levels_of(cost) == std::vector{LinkLevel::scale_out});
}

TEST_CASE("what switches reduce goes at the rate that reductions reach") {
  // A quarter of what rings reach of a NIC: a rail takes four times as long, and rings what they
  // took.
  const Machine machine = sharp_machine(32);
  Machine slow = machine;
  auto& out = *std::get<ClusterProfile>(slow.profile.network).scale_out;
  out.reduction->efficiency.value = out.efficiency.value / 4;
  Asked asked{.one_of_each_node = true};
  const double whole = flow_cost(machine, "collnet", asked).transfer.count();
  const Seconds slowly = flow_cost(slow, "collnet", asked).transfer;
  CHECK(slowly.count() / whole == Approx(4).epsilon(1e-9));
  CHECK(flow_cost(slow, "ring", asked).transfer == flow_cost(machine, "ring", asked).transfer);
  // With all GPUs it is the NICs that bound, not NVLink as in the case below.
  const double payload = 4.0 * GiB;
  CHECK(flow_cost(slow, "collnet").transfer.count() ==
        Approx(payload / (8 * nic / 4)).epsilon(0.02));
  asked.folding = Folding::unfolded;
  CHECK(flow_cost(slow, "collnet", asked).transfer == slowly);
}

TEST_CASE("CollNetDirect by flows takes what the formula says of large arrays") {
  // 32 GPUs of 4 nodes: inside (8 + 8 - 2) / 8 P at 370.8 GB/s, 4.72 ms for a GB, out of the node P
  // at 8 * 48.5 GB/s, 2.58 ms. Gathering and giving back share NVLink, chunk by chunk.
  const Machine machine = sharp_machine(32);
  const double payload = 4.0 * GiB;
  const double inside = 14.0 / 8 * payload / nvlink;
  const CostBreakdown cost = flow_cost(machine, "collnet");
  CHECK(cost.transfer.count() >= inside * (1 - 1e-9));
  CHECK(cost.transfer.count() == Approx(inside).epsilon(0.02));
  // Halves: 7/8 P inside, P out of the node.
  for (const CollectiveKind half : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const double time = flow_cost(machine, "collnet", {.kind = half}).transfer.count();
    const double bound = std::max(7.0 / 8 * payload / nvlink, payload / (8 * nic));
    CHECK(time >= bound * (1 - 1e-9));
    CHECK(time == Approx(bound).epsilon(0.02));
  }
}

TEST_CASE("trees of NVLS by flows take no less than their busiest links, and little more") {
  for (const std::int64_t nodes : {2, 3, 4, 8}) {
    INFO(nodes << " nodes");
    const Machine machine = sharp_machine(8 * nodes);
    const Bytes payload(4 * GiB);
    const Way inside({Bandwidth(nvlink), Seconds(0)}, 1);
    const Way across({Bandwidth(nic), Seconds(0)}, 1);
    const double bound = to_seconds(nvls_tree_bound(nodes, 8, payload, inside, across)).count();
    const double time = flow_cost(machine, "nvls-tree").transfer.count();
    CHECK(time >= bound * (1 - 1e-9));
    CHECK(time < bound * 1.05);
  }
}

TEST_CASE("machines fold to the time of every message by itself") {
  const Machine machine = make_machine(load_profile(with_sharp, {}), 32, std::nullopt, {});
  for (const char* algorithm : {"collnet", "nvls-tree"}) {
    const Asked folded{.payload = Bytes(3 * MiB)};
    Asked unfolded = folded;
    unfolded.folding = Folding::unfolded;
    const CostBreakdown cost = flow_cost(machine, algorithm, folded);
    CHECK(cost.total() == flow_cost(machine, algorithm, unfolded).total());
  }
}

TEST_CASE("where switches cannot reduce, flows say why") {
  const auto fails = [](const Machine& machine, const char* algorithm, const Asked& asked,
                        const char* why) {
    CHECK_THROWS_WITH(flow_cost(machine, algorithm, asked), Contains(why));
  };
  const auto machine_of = [](const char* name, std::int64_t devices) {
    return make_machine(load_profile(name, {}), devices, std::nullopt, {});
  };
  fails(machine_of("dgx-h100", 16), "collnet", {},
        "\"collnet\" needs a network that reduces: \"reduction\" in the profile's scale_out");
  fails(sharp_machine(8), "collnet", {}, "\"collnet\" needs groups over several nodes");
  fails(sharp_machine(16), "nvls-tree", {.one_of_each_node = true},
        "\"nvls-tree\" needs groups with several devices on each of several nodes");
  fails(machine_of("dgx-a100", 16), "nvls-tree", {}, "needs NVSwitch and GPUs of Hopper or later");
  fails(machine_of("tpu-v5p", 8), "collnet", {}, "\"collnet\" needs a network with switches");
  fails(sharp_machine(16), "nvls-tree", {.kind = CollectiveKind::all_gather},
        "\"nvls-tree\" does no all-gather");
  Machine all_reduce_only = sharp_machine(16);
  auto& cluster = std::get<ClusterProfile>(all_reduce_only.profile.network);
  cluster.scale_out->reduction->all_gather.reset();
  fails(all_reduce_only, "collnet", {.kind = CollectiveKind::all_gather},
        "needs a network that does an all-gather, too");
}

}  // namespace shardsim::network
