#include "sim/collectives/cluster_cost.hpp"

#include <catch2/catch.hpp>

#include "machines.hpp"
#include "sim/collectives/collective_cost.hpp"

namespace shardsim {
namespace {

using testing::cluster;
using testing::link;

Collective over(std::vector<AxisRef> axes, CollectiveKind kind, std::int64_t payload) {
  Collective collective;
  collective.kind = kind;
  collective.axes = std::move(axes);
  collective.payload = Bytes(payload);
  return collective;
}

double microseconds(Seconds duration) { return duration.count() * 1e6; }

// jax-ml/scaling-book, chapter on GPUs: all-gather of bf16[1024, 16384] over 8 x H100 takes 65 us
// at NVLink's 450 GB/s and 79 us at the 370 GB/s that a ring reaches.
TEST_CASE("all-gather in a node: the scaling book's worked example") {
  const Mesh mesh({{"x", 8}});
  const Collective gather = over({mesh.whole(0)}, CollectiveKind::all_gather, 1024 * 16384 * 2);
  const auto cost = [&](double bandwidth) {
    const Machine machine = cluster(8, 8, link(bandwidth, 0), link(50e9, 0));
    return collective_cost(Placement(mesh, machine), gather);
  };
  CHECK(microseconds(cost(450e9).total()) == Approx(65).margin(0.5));
  CHECK(microseconds(cost(370e9).total()) == Approx(79).margin(0.5));
  CHECK(levels_of(cost(450e9)) == std::vector{LinkLevel::scale_up});
}

// The terms of sim/collectives/collective_cost.hpp's example: 14 steps of 2 us, 112 MiB at 370
// GB/s.
TEST_CASE("all-reduce in a node: launch, steps and wire bytes add up") {
  const Mesh mesh({{"x", 8}});
  Machine machine = cluster(8, 8, link(370e9, 2e-6), link(50e9, 0));
  machine.profile.collective_launch.value = Seconds(5e-6);
  const CostBreakdown cost = collective_cost(
      Placement(mesh, machine), over({mesh.whole(0)}, CollectiveKind::all_reduce, 64 * MiB));
  CHECK(microseconds(cost.launch) == Approx(5));
  CHECK(microseconds(cost.latency) == Approx(14 * 2));
  CHECK(microseconds(cost.transfer) == Approx(112.0 * MiB / 370e9 * 1e6));
  CHECK(microseconds(cost.total()) == Approx(5 + 28 + 317.4).margin(0.1));
}

// A chain of 16 over 2 nodes of 8 crosses between them once, and makes 14 hops inside; every NIC
// carries an eighth of the payload, every NVLink all of it: 1 GB / 400 GB/s, 1 GB / (8 * 50 GB/s).
TEST_CASE("a broadcast is a chain through the nodes") {
  const Machine machine = cluster(16, 8, link(400e9, 1e-6), link(50e9, 10e-6));
  const Mesh mesh({{"x", 16}});
  const CostBreakdown cost = collective_cost(
      Placement(mesh, machine), over({mesh.whole(0)}, CollectiveKind::broadcast, 1'000'000'000));
  CHECK(cost.latency.count() == Approx(14 * 1e-6 + 10e-6));
  CHECK(cost.transfer.count() == Approx(1e9 / 400e9));
}

TEST_CASE("a ring over nodes leaves every node through as many NICs as it has members there") {
  const Machine machine = cluster(32, 8, link(450e9, 1e-6), link(50e9, 10e-6));
  const Mesh mesh({{"nodes", 4}, {"pairs", 4}, {"two", 2}});
  const Placement placement(mesh, machine);
  const auto cost = [&](std::vector<AxisRef> axes) {
    return collective_cost(placement, over(std::move(axes), CollectiveKind::all_gather, 32 * MiB));
  };
  const double payload = 32.0 * MiB;

  // One member per node: 3/4 of the payload through one NIC, 3 steps.
  const CostBreakdown alone = cost({mesh.whole(0)});
  CHECK(alone.transfer.count() == Approx(0.75 * payload / 50e9));
  CHECK(microseconds(alone.latency) == Approx(3 * 10));
  CHECK(levels_of(alone) == std::vector{LinkLevel::scale_out});

  // Two per node: 7/8 through two NICs; the longest way makes all 4 hops across and 3 of 4 inside.
  const CostBreakdown two = cost({mesh.whole(0), mesh.whole(2)});
  CHECK(two.transfer.count() == Approx(7.0 / 8 * payload / (2 * 50e9)));
  CHECK(microseconds(two.latency) == Approx(4 * 10 + 3 * 1));
  CHECK(levels_of(two) == std::vector{LinkLevel::scale_up, LinkLevel::scale_out});

  // All: 31/32 at 8 x 50 GB/s, less than NVLink's 450.
  const CostBreakdown all = cost({mesh.whole(0), mesh.whole(1), mesh.whole(2)});
  CHECK(all.transfer.count() == Approx(31.0 / 32 * payload / (8 * 50e9)));
  CHECK(all.algorithm == "ring over 4 nodes, 8 NICs each");
}

// 4 NICs of 25 GB/s for 8 devices: all eight together have 100 GB/s, whether as one group or as
// eight that each cross with one member; two alone have a NIC each.
TEST_CASE("neighbours share a NIC when there are fewer than devices") {
  Machine machine = cluster(16, 8, link(300e9, 0), link(25e9, 0));
  std::get<ClusterProfile>(machine.profile.network).scale_out->nics_per_node.value = 4;
  const Mesh mesh({{"nodes", 2}, {"x", 8}});
  const Placement placement(mesh, machine);
  const double payload = 16.0 * MiB;
  const auto transfer = [&](const Collective& collective) {
    return collective_cost(placement, collective).transfer.count();
  };
  const CostBreakdown all = collective_cost(
      placement, over({mesh.whole(0), mesh.whole(1)}, CollectiveKind::all_gather, 16 * MiB));
  CHECK(all.transfer.count() == Approx(15.0 / 16 * payload / (4 * 25e9)));
  CHECK(all.algorithm == "ring over 2 nodes, 4 NICs each");

  const Collective each = over({mesh.whole(0)}, CollectiveKind::all_gather, 16 * MiB);
  CHECK(transfer(each) == Approx(0.5 * payload / (25e9 / 2)));
  CHECK(collective_cost(placement, each).algorithm == "ring over 2 nodes, 0.5 NICs each");

  Collective alone = over({}, CollectiveKind::all_gather, 16 * MiB);
  alone.groups = {{0, 1, 8, 9}};
  CHECK(transfer(alone) == Approx(0.75 * payload / (2 * 25e9)));

  // All-to-all: 8 of 16 pieces cross, through half a NIC.
  const Collective exchange =
      over({mesh.whole(0), mesh.whole(1)}, CollectiveKind::all_to_all, 16 * MiB);
  CHECK(transfer(exchange) == Approx(0.5 * payload / (25e9 / 2)));

  // Devices 0 and 1 send through the same NIC, 0 and 2 do not.
  Collective permute = over({}, CollectiveKind::collective_permute, 1000);
  permute.source_targets = {{0, 8}, {1, 10}};
  CHECK(transfer(permute) == Approx(2 * 1000 / 25e9));
  permute.source_targets = {{0, 8}, {2, 10}};
  CHECK(transfer(permute) == Approx(1000 / 25e9));
}

// 32 NICs of 12.5 GB/s for 8 devices: four each.
TEST_CASE("a device with several NICs uses all of them") {
  Machine machine = cluster(16, 8, link(450e9, 0), link(12.5e9, 0));
  std::get<ClusterProfile>(machine.profile.network).scale_out->nics_per_node.value = 32;
  const Mesh mesh({{"nodes", 2}, {"x", 8}});
  const Placement placement(mesh, machine);
  const CostBreakdown cost =
      collective_cost(placement, over({mesh.whole(0)}, CollectiveKind::all_gather, 16 * MiB));
  CHECK(cost.transfer.count() == Approx(8.0 * MiB / 50e9));
  CHECK(cost.algorithm == "ring over 2 nodes, 4 NICs each");
  Collective permute = over({}, CollectiveKind::collective_permute, 1000);
  permute.source_targets = {{0, 8}, {1, 9}};
  CHECK(collective_cost(placement, permute).transfer.count() == Approx(1000 / 50e9));
}

// MI300X: 7 links of 64 GB/s to the 7 others.
TEST_CASE("direct links count as far as they end at members of the group") {
  Machine machine = cluster(8, 8, link(448e9, 0), link(50e9, 0));
  const auto transfer = [&](std::vector<std::int64_t> group, CollectiveKind kind) {
    Collective collective = over({}, kind, 8 * MiB);
    if (kind == CollectiveKind::collective_permute) {
      collective.source_targets = {{group[0], group[1]}};
    } else {
      collective.groups = {std::move(group)};
    }
    const Mesh mesh({{"x", 8}});
    return collective_cost(Placement(mesh, machine), collective).transfer.count();
  };
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6, 7};
  const double through_switch = transfer({0, 1}, CollectiveKind::all_gather);
  CHECK(through_switch == Approx(4.0 * MiB / 448e9));
  auto& fabric = std::get<ClusterProfile>(machine.profile.network).scale_up.fabric.value;
  for (const Fabric direct : {Fabric::xgmi, Fabric::nvlink}) {
    fabric = direct;
    CHECK(transfer({0, 1}, CollectiveKind::all_gather) == Approx(4.0 * MiB / 64e9));
    CHECK(transfer({0, 1, 2}, CollectiveKind::all_gather) == Approx(16.0 / 3 * MiB / 128e9));
    CHECK(transfer(all, CollectiveKind::all_gather) == Approx(7.0 * MiB / 448e9));
    CHECK(transfer(all, CollectiveKind::all_to_all) == Approx(7.0 * MiB / 448e9));
    CHECK(transfer({0, 5}, CollectiveKind::collective_permute) == Approx(8.0 * MiB / 64e9));
  }
  fabric = Fabric::pcie;
  CHECK(transfer({0, 1}, CollectiveKind::all_gather) == Approx(through_switch));
}

TEST_CASE("NVLink bounds a ring whose NICs together are faster") {
  const Machine machine = cluster(16, 8, link(100e9, 0), link(50e9, 0));
  const Mesh mesh({{"x", 16}});
  const CostBreakdown cost = collective_cost(
      Placement(mesh, machine), over({mesh.whole(0)}, CollectiveKind::reduce_scatter, 16 * MiB));
  CHECK(cost.transfer.count() == Approx(15.0 * MiB / 100e9));
}

// Group of 16 on 2 nodes, 16 MiB each: 8 peers across, 7 inside, 1 MiB to each.
TEST_CASE("all-to-all sends each peer its piece, inside and across at once") {
  const Machine machine = cluster(16, 8, link(450e9, 1e-6), link(50e9, 10e-6));
  const Mesh mesh({{"x", 16}});
  const CostBreakdown cost = collective_cost(
      Placement(mesh, machine), over({mesh.whole(0)}, CollectiveKind::all_to_all, 16 * MiB));
  CHECK(cost.transfer.count() == Approx(8.0 * MiB / 50e9));
  CHECK(microseconds(cost.latency) == Approx(8 * 10 + 7 * 1));
}

// The same group; rows visit 4 of 64 places, 4 on each device. A row is on 16 (1 - C(60, 4) / C(64,
// 4)) = 3.72042 devices and on 2 (1 - C(32, 4) / C(64, 4)) = 1.88681 nodes: of 16 MiB / 3.72042 of
// rows half of 1.88681 copies cross. Inside, 7 pieces of 1 MiB, and 7 in 8 of 8 that have arrived.
TEST_CASE("rows that visit places cross the network once for each node") {
  const Machine machine = cluster(16, 8, link(450e9, 1e-6), link(50e9, 10e-6));
  const Mesh mesh({{"x", 16}});
  Collective rows = over({mesh.whole(0)}, CollectiveKind::all_to_all, 16 * MiB);
  rows.visits = RowVisits{.places = 64, .visited = 4, .multiprocessors = 20};
  const CostBreakdown cost = collective_cost(Placement(mesh, machine), rows);
  CHECK(cost.transfer.count() == Approx(16.0 * MiB / 3.72042 * 1.88681 / 2 / 50e9));
  CHECK(microseconds(cost.latency) == Approx(11));
  CHECK(cost.thread_blocks == 20);
  const Machine slow_inside = cluster(16, 8, link(100e9, 1e-6), link(50e9, 10e-6));
  CHECK(collective_cost(Placement(mesh, slow_inside), rows).transfer.count() ==
        Approx(14.0 * MiB / 100e9));
}

// Two devices, 4 places, 2 visited: both are on one device in 2 of 6 choices, 5/3 copies. 10000
// rows of 1000 B are 6000 tokens. On 10 multiprocessors a token takes 100 ns and 0.1 ns a byte, a
// row 50 and 0.01 ns a byte: (6000 x 200 + 10000 x 60) / 10 = 180 us, of which the link, with half
// of 10 MB at 100 GB/s, is busy for 50. At 10 GB/s the link takes 500 us.
TEST_CASE("kernels that send rows are bound by their multiprocessors, or by the link") {
  Machine machine = cluster(2, 2, link(100e9, 1e-6), link(50e9, 10e-6));
  KernelData kernels;
  RowExchangeTable slow;
  slow.overhead = Seconds(30e-6);
  slow.overhead_across = Seconds(90e-6);
  slow.token = Seconds(100e-9);
  slow.token_byte = Seconds(0.1e-9);
  slow.row = Seconds(50e-9);
  slow.row_byte = Seconds(0.01e-9);
  kernels.row_exchange["hybridep"] = {slow, RowExchangeTable{}};
  machine.profile.device.kernels = kernels;
  const Mesh mesh({{"x", 2}});
  Collective rows = over({mesh.whole(0)}, CollectiveKind::all_to_all, 10'000'000);
  rows.visits = RowVisits{.places = 4,
                          .visited = 2,
                          .multiprocessors = 10,
                          .kernels = RowKernels::hybridep,
                          .row = Bytes(1000)};
  const CostBreakdown cost = collective_cost(Placement(mesh, machine), rows);
  CHECK(microseconds(cost.latency) == Approx(30));
  CHECK(microseconds(cost.transfer) == Approx(180));
  CHECK(cost.links.front().out == Approx(50.0 / 180));

  const Machine narrow = [&] {
    Machine other = cluster(2, 2, link(10e9, 1e-6), link(50e9, 10e-6));
    other.profile.device.kernels = kernels;
    return other;
  }();
  CHECK(microseconds(collective_cost(Placement(mesh, narrow), rows).transfer) == Approx(500));
  rows.visits->combines = true;
  CHECK(microseconds(collective_cost(Placement(mesh, machine), rows).transfer) == Approx(50));
  rows.visits->combines = false;
  rows.visits->kernels = RowKernels::deepep;  // of which nothing is known: as links alone
  CHECK(microseconds(collective_cost(Placement(mesh, machine), rows).transfer) == Approx(50));
  machine = cluster(2, 1, link(100e9, 1e-6), link(50e9, 10e-6));
  machine.profile.device.kernels = kernels;
  rows.visits->kernels = RowKernels::hybridep;
  CHECK(microseconds(collective_cost(Placement(mesh, machine), rows).latency) == Approx(90));
}

TEST_CASE("a permute takes as long as its farthest message") {
  const Machine machine = cluster(8, 4, link(450e9, 1e-6), link(50e9, 10e-6));
  const Mesh mesh({{"x", 2}, {"y", 4}});
  const Placement placement(mesh, machine);
  Collective permute = over({}, CollectiveKind::collective_permute, 1000);
  permute.source_targets = {{0, 1}, {1, 0}};
  CHECK(collective_cost(placement, permute).transfer.count() == Approx(1000 / 450e9));
  permute.source_targets = {{0, 1}, {1, 4}};
  CHECK(collective_cost(placement, permute).transfer.count() == Approx(1000 / 50e9));
  permute.source_targets = {{3, 3}};
  CHECK(collective_cost(placement, permute).total() == Seconds(0));
  // Shifted along an axis: y stays inside nodes, x crosses.
  const auto along_y = over({mesh.whole(1)}, CollectiveKind::collective_permute, 1000);
  CHECK(levels_of(collective_cost(placement, along_y)) == std::vector{LinkLevel::scale_up});
  const auto along_x = over({mesh.whole(0)}, CollectiveKind::collective_permute, 1000);
  CHECK(levels_of(collective_cost(placement, along_x)) == std::vector{LinkLevel::scale_out});
}

TEST_CASE("a group of one costs nothing, not even a launch") {
  Machine machine = cluster(8, 8, link(450e9, 1e-6), link(50e9, 1e-6));
  machine.profile.collective_launch.value = Seconds(1);
  const Mesh mesh({{"one", 1}, {"x", 8}});
  const CostBreakdown cost = collective_cost(
      Placement(mesh, machine), over({mesh.whole(0)}, CollectiveKind::all_reduce, 1000));
  CHECK(cost.total() == Seconds(0));
  CHECK(cost.links.empty());
}

// 18 devices on nodes of 8: rows of 6 are {0..5} on one node, {6..11} as 2 + 4, {12..17} as 4 + 2.
TEST_CASE("axes that nodes cut unevenly: the worst group counts") {
  const Mesh mesh({{"a", 3}, {"b", 6}});
  const Collective gather = over({mesh.whole(1)}, CollectiveKind::all_gather, 6000);
  CHECK(node_spreads(mesh, gather, 8) == std::vector<NodeSpread>{{6, 1, 6, 6}, {6, 2, 2, 4}});
  const Machine machine = cluster(18, 8, link(450e9, 0), link(50e9, 0));
  CHECK(collective_cost(Placement(mesh, machine), gather).transfer.count() ==
        Approx(5000 / (2 * 50e9)));
  // The two that are alone on a node send to four across.
  const Collective exchange = over({mesh.whole(1)}, CollectiveKind::all_to_all, 6000);
  CHECK(collective_cost(Placement(mesh, machine), exchange).transfer.count() ==
        Approx(4 * 1000 / 50e9));
}

// The closed form for nested digits must say what counting the groups says.
TEST_CASE("spreads read off the axes equal spreads counted from the groups") {
  for (const std::int64_t per_node : {1, 2, 4, 6, 8, 12, 24, 48}) {
    const Mesh mesh({{"a", 2}, {"b", 12}, {"c", 2}});
    const std::vector<std::vector<AxisRef>> choices{
        {mesh.whole(0)}, {mesh.whole(1)}, {mesh.whole(2)},        {mesh.whole(0), mesh.whole(2)},
        {{1, 1, 3}},     {{1, 3, 4}},     {{1, 1, 2}, {1, 4, 3}}, {mesh.whole(1), mesh.whole(2)}};
    for (const std::vector<AxisRef>& axes : choices) {
      const Collective by_axes = over(axes, CollectiveKind::all_gather, 1);
      Collective listed = over({}, CollectiveKind::all_gather, 1);
      listed.groups = mesh.groups(axes);
      CAPTURE(per_node, mesh.names_of(axes));
      CHECK(node_spreads(mesh, by_axes, per_node) == node_spreads(mesh, listed, per_node));
    }
  }
}

TEST_CASE("a mesh of another size than the machine is an error") {
  const Machine machine = cluster(8, 8, link(1, 0), link(1, 0));
  CHECK_THROWS_WITH(Placement(Mesh({{"x", 4}}), machine), "/mesh: 4 devices on a machine of 8");
}

}  // namespace
}  // namespace shardsim
