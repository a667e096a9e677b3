#include "sim/collectives/device_order.hpp"

#include <catch2/catch.hpp>

#include "machines.hpp"
#include "sim/collectives/collective_cost.hpp"

namespace shardsim {
namespace {

using testing::cluster;
using testing::link;
using testing::torus;
using Groups = std::vector<std::vector<std::int64_t>>;

DeviceOrder axes(std::vector<std::string> fastest_first) {
  return {DeviceOrder::Kind::axes, std::move(fastest_first), {}, {"", "/placement"}};
}

DeviceOrder listed(std::vector<std::int64_t> devices) {
  return {DeviceOrder::Kind::listed, {}, std::move(devices), {"", "/placement"}};
}

Collective over(const Mesh& mesh, const std::vector<std::string>& names) {
  Collective collective;
  collective.kind = CollectiveKind::all_gather;
  collective.payload = Bytes(8 * MiB);
  for (const std::string& name : names) collective.axes.push_back(*mesh.parse(name));
  return collective;
}

// By device, whatever order of axes or list it is.
Groups groups_of(const Mesh& mesh, const DeviceOrder& order, const std::string& axis) {
  const NumberedMesh numbered(mesh, order);
  const Collective collective = numbered.numbered(over(mesh, {axis}));
  return collective.groups.empty() ? numbered.mesh().groups(collective.axes) : collective.groups;
}

// The docstring of initialize_model_parallel (NVIDIA/Megatron-LM @00caa53
// megatron/core/parallel_state.py): 16 GPUs, tensor parallel 2, pipeline parallel 4. Whatever order
// the mesh has its axes in.
TEST_CASE("Megatron-LM's documented groups of 16 GPUs") {
  const Mesh mesh({{"dp", 2}, {"pp", 4}, {"tp", 2}});
  const DeviceOrder order = axes(megatron_order());
  CHECK(groups_of(mesh, order, "dp") ==
        Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(groups_of(mesh, order, "tp") ==
        Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(groups_of(mesh, order, "pp") ==
        Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
}

// The docstring of generate_masked_orthogonal_rank_groups there: sizes [tp, dp, pp] = [2, 3, 4] in
// the order tp-dp-pp, and 2-2-2 in the order tp-pp-dp.
TEST_CASE("Megatron-LM's documented groups in orders of one's own") {
  const Mesh uneven({{"pp", 4}, {"dp", 3}, {"tp", 2}});
  const Groups dp = groups_of(uneven, axes({"tp", "dp", "pp"}), "dp");
  CHECK(dp.front() == std::vector<std::int64_t>{0, 2, 4});
  CHECK(dp.at(1) == std::vector<std::int64_t>{1, 3, 5});
  CHECK(dp.back() == std::vector<std::int64_t>{19, 21, 23});
  const Mesh cube({{"dp", 2}, {"tp", 2}, {"pp", 2}});
  CHECK(groups_of(cube, axes({"tp", "pp", "dp"}), "dp") == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("Megatron-LM's names stand for axes that mean the same, the last the fastest") {
  const Mesh mesh({{"data", 2}, {"fsdp", 2}, {"tensor", 2}});
  CHECK(groups_of(mesh, axes(megatron_order()), "data") == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(groups_of(mesh, axes({"dp", "tp"}), "fsdp") == Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
}

// Collectives of parts of axes, of groups and of pairs mean the same devices as the list does.
TEST_CASE("an order of axes and the same order as a list are one") {
  const Mesh mesh({{"a", 4}, {"b", 2}});
  const DeviceOrder by_axes = axes({"a", "b"});
  const DeviceOrder by_list = listed({0, 4, 1, 5, 2, 6, 3, 7});
  CHECK_FALSE(NumberedMesh(mesh, by_list).is_listed());
  for (const std::string part : {"a", "b", "a:(1)2", "a:(2)2"}) {
    CHECK(groups_of(mesh, by_axes, part) == groups_of(mesh, by_list, part));
  }
  Collective pairs;
  pairs.kind = CollectiveKind::collective_permute;
  pairs.source_targets = {{1, 2}};
  pairs.groups = {{0, 7}};
  const Collective numbered = NumberedMesh(mesh, by_axes).numbered(pairs);
  CHECK(numbered.source_targets == decltype(pairs.source_targets){{4, 1}});
  CHECK(numbered.groups == Groups{{0, 7}});
}

TEST_CASE("a list that no order of axes has gives listed groups") {
  const Mesh mesh({{"a", 2}, {"b", 2}});
  CHECK(groups_of(mesh, listed({0, 1, 3, 2}), "a") == Groups{{0, 3}, {1, 2}});
  CHECK(groups_of(mesh, listed({0, 1, 2, 3}), "a") == Groups{{0, 2}, {1, 3}});
}

// Two nodes of 8, NVLink 400 GB/s, NICs of 50 GB/s, no latency; 8 MiB gathered over tp=8.
//   tp fastest   a node: 7/8 * 8 MiB / 400 GB/s                                       18.4 us
//   dp fastest   every other device of both nodes, 4 NICs each and 4 members of each node:
//                7/8 * 8 MiB / (4 * 50 GB/s)                                          36.7 us
TEST_CASE("an axis that moves out of its node pays for the network") {
  const Machine machine = cluster(16, 8, link(400e9, 0), link(50e9, 0));
  const Mesh mesh({{"dp", 2}, {"tp", 8}});
  const Collective gather = over(mesh, {"tp"});
  const double wire = 7.0 / 8 * 8 * MiB;
  const auto cost = [&](const DeviceOrder& order) {
    return collective_cost(Placement(mesh, machine, collective_models::simulated, order), gather);
  };
  const CostBreakdown inside = cost(axes({"tp", "dp"}));
  CHECK(inside.total().count() == Approx(wire / 400e9));
  CHECK(levels_of(inside) == std::vector{LinkLevel::scale_up});
  const CostBreakdown across = cost(axes({"dp", "tp"}));
  CHECK(across.total().count() == Approx(wire / (4 * 50e9)));
  CHECK(across.algorithm == "ring over 2 nodes, 4 NICs each");
  CHECK(cost({}).total().count() == inside.total().count());
}

// A list in which tp's groups are {0..3, 8..11} and {4..7, 12..15}: as far apart as dp fastest.
TEST_CASE("groups of a list are found on their nodes") {
  const Machine machine = cluster(16, 8, link(400e9, 0), link(50e9, 0));
  const Mesh mesh({{"dp", 2}, {"tp", 8}});
  const DeviceOrder order = listed({3, 0, 1, 2, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15});
  const Placement placement(mesh, machine, collective_models::simulated, order);
  CHECK(collective_cost(placement, over(mesh, {"tp"})).total().count() ==
        Approx(7.0 / 8 * 8 * MiB / (4 * 50e9)));
}

// 4 x 2, x wraps. `a` of 4 along x is a ring: 3/4 * 8 MiB / (2 * 1e9); an a that steps over two
// devices takes both dimensions: a ring of 2 x and y, no ring: corner with x lane.
TEST_CASE("axes step through the devices of a torus by number") {
  const Machine machine = torus({4, 2}, {true, false}, link(1e9, 0));
  const Mesh mesh({{"b", 2}, {"a", 4}});
  const auto spans = [&](const DeviceOrder& order) {
    return Placement(mesh, machine, collective_models::all_links, order).spans();
  };
  using Spans = std::vector<std::vector<TorusSpan>>;
  CHECK(spans({DeviceOrder::Kind::row_major, {}, {}, {}}) == Spans{{{1, 2, 1}}, {{0, 4, 1}}});
  // The axes of the mesh that is numbered, slowest first: a, then b.
  CHECK(spans(axes({"b", "a"})) == Spans{{{1, 2, 1}, {0, 2, 2}}, {{0, 2, 1}}});
  const Placement ring(mesh, machine, collective_models::all_links, axes({"a", "b"}));
  CHECK(collective_cost(ring, over(mesh, {"a"})).transfer.count() ==
        Approx(3.0 / 4 * 8 * MiB / 2e9));
}

// A ring of 4 chips in the order 0 2 1 3: neighbours are 2, 1, 2 and 1 hops apart (from 3 back to
// 0). A ring both ways sends 3/4 of the payload, half each way; what goes 0 -> 2 -> 1 -> 3 -> 0 and
// back puts 3 messages on the busiest link: 2 hops up from 0 (even), down from 1 (odd), ...
TEST_CASE("an order that is no digits of a torus is routed link by link") {
  const Machine machine = torus({4, 1}, {true, false}, link(1e9, 1e-6));
  const Mesh mesh({{"a", 4}});
  const Placement placement(mesh, machine, collective_models::all_links, listed({0, 2, 1, 3}));
  const CostBreakdown cost = collective_cost(placement, over(mesh, {"a"}));
  CHECK(cost.algorithm == "ring as listed");
  // Halfway round the ring are 2 steps of at most 2 hops.
  CHECK(cost.latency.count() == Approx(2 * 2 * 1e-6));
  // Up: 0-1 (from 0 to 2), 1-2 (the same, from 2 to 0 by the even rule up: 2-3, 3-0) and so on.
  //   0 -> 2 up: 01 12;  2 -> 1 down: 21;  1 -> 3 down: 10 03;  3 -> 0 up: 30
  //   2 -> 0 up: 23 30;  1 -> 2 up: 12;    3 -> 1 down: 32 21;  0 -> 3 down: 03
  // Links 12, 30, 03 and 21 carry two messages each.
  CHECK(cost.transfer.count() == Approx(2 * 3.0 / 4 * 8 * MiB / 2 / 1e9));
}

TEST_CASE("a chip's devices are the first digit of a device's number") {
  const TorusShape torus{{2, 2}, {false, false}, 2};
  const Mesh numbered({{"slow", 4}, {"fast", 2}});
  using Spans = std::vector<std::vector<TorusSpan>>;
  CHECK(spans_by_number(torus, numbered) == Spans{{{1, 2, 1}, {0, 2, 1}}, {{2, 2, 1}}});
  // Of 3 x 4 chips an axis of 2 ends within a row.
  const TorusShape odd{{3, 4}, {false, false}};
  CHECK_FALSE(spans_by_number(odd, Mesh({{"slow", 6}, {"fast", 2}})).has_value());
}

TEST_CASE("orders that do not suit the mesh say why") {
  const Mesh mesh({{"data", 2}, {"model", 4}});
  const auto check = [&](const DeviceOrder& order) { check_device_order(order, mesh); };
  CHECK_THROWS_WITH(
      check(axes({"modle", "data"})),
      Catch::Contains("/placement: unknown axis \"modle\"; the mesh has data, model") &&
          Catch::EndsWith("did you mean \"model\"?"));
  CHECK_THROWS_WITH(check(axes({"model", "data", "model"})),
                    "/placement: the order names axis \"model\" twice");
  CHECK_THROWS_WITH(check(axes({"model", "tp", "data"})),
                    "/placement: the order names axis \"model\" twice");
  CHECK_THROWS_WITH(check(axes({"model"})),
                    "/placement: the order model lacks axis \"data\", of size 2");
  CHECK_THROWS_WITH(check(listed({0, 1, 2})), "/placement: lists 3 devices, but the mesh has 8");
  CHECK_THROWS_WITH(check(listed({0, 1, 2, 3, 4, 5, 6, 8})),
                    "/placement: device 8 is none of 0 to 7");
  CHECK_THROWS_WITH(check(listed({0, 1, 2, 3, 4, 5, 6, 6})),
                    "/placement: device 6 is listed twice");
}

}  // namespace
}  // namespace shardsim
