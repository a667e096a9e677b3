#include "sim/collectives/torus_cost.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "machines.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/collectives/torus_lanes.hpp"

namespace shardsim::torus_cost_test {
namespace {

using testing::link;
using testing::torus;

Collective over(std::vector<AxisRef> axes, CollectiveKind kind, std::int64_t payload) {
  Collective collective;
  collective.kind = kind;
  collective.axes = std::move(axes);
  collective.payload = Bytes(payload);
  return collective;
}

double microseconds(Seconds duration) { return duration.count() * 1e6; }

// One mesh axis for every dimension of a 4x4x4 torus.
Placement cube(bool wraps, double bandwidth, double latency = 0) {
  return {Mesh({{"X", 4}, {"Y", 4}, {"Z", 4}}),
          torus({4, 4, 4}, {wraps, wraps, wraps}, link(bandwidth, latency)),
          {{{0, 4, 1}}, {{1, 4, 1}}, {{2, 4, 1}}}};
}

// The scaling book takes V/W for a ring where (n-1)/n V/W is exact: its figures times (n-1)/n are
// ours. jax-ml/scaling-book, chapter on sharded matmuls.
TEST_CASE("all-gather on v5e, 34 MB over an axis of 4: 377 us in a ring, 560 us in a line") {
  const Mesh mesh({{"X", 4}});
  const Collective gather = over({mesh.whole(0)}, CollectiveKind::all_gather, 2048 * 8192 * 2);
  const auto cost = [&](bool wraps) {
    return collective_cost(
        Placement(mesh, torus({4, 1}, {wraps, false}, link(45e9, 0)), {{{0, 4, 1}}}), gather);
  };
  CHECK(microseconds(cost(true).transfer) * 4 / 3 == Approx(377).epsilon(0.02));
  CHECK(microseconds(cost(false).transfer) == Approx(560).epsilon(0.02));
  CHECK(cost(true).algorithm == "ring on x");
  CHECK(cost(false).algorithm == "line on x");
}

// Same source: v4 4x4x4, B = 1024, D = 4096 in bf16, sharded [B_X, D_Y], W = 9e10. AG_X leaves
// [B, D_Y], 2 MiB, in 23 us; AG_XY leaves 8 MiB over two axes in 46 us; AR_Z of [B_X, D_Y], 512
// KiB, takes 11.6 us.
TEST_CASE("v4 4x4x4: gather over X, over X and Y, reduce over Z") {
  const Placement placement = cube(/*wraps=*/true, 45e9);
  const Mesh& mesh = placement.mesh();
  const std::int64_t whole = 1024 * 4096 * 2;
  const auto transfer = [&](std::vector<AxisRef> axes, CollectiveKind kind, std::int64_t payload) {
    return microseconds(collective_cost(placement, over(std::move(axes), kind, payload)).transfer);
  };
  CHECK(transfer({mesh.whole(0)}, CollectiveKind::all_gather, whole / 4) * 4 / 3 ==
        Approx(23).epsilon(0.02));
  CHECK(transfer({mesh.whole(0), mesh.whole(1)}, CollectiveKind::all_gather, whole) * 16 / 15 ==
        Approx(46).epsilon(0.02));
  CHECK(transfer({mesh.whole(2)}, CollectiveKind::all_reduce, whole / 16) * 4 / 3 ==
        Approx(11.6).epsilon(0.02));
}

// Same source, which gives the exact figure here: v5p, 256 MB over an axis of 8, 1.24 ms.
TEST_CASE("v5p, 256 MB over a ring of 8: 1.24 ms") {
  const Mesh mesh({{"X", 8}});
  const Placement placement(mesh, torus({8, 1, 1}, {true, true, true}, link(90e9, 1e-6)),
                            {{{0, 8, 1}}});
  const CostBreakdown cost =
      collective_cost(placement, over({mesh.whole(0)}, CollectiveKind::all_gather, 256'000'000));
  CHECK(cost.transfer.count() * 1e3 == Approx(1.24).epsilon(0.01));
  CHECK(microseconds(cost.latency) == Approx(4));  // half of the ring, both ways at once
}

// Same source: 64 MiB per chip, 2.98 ms on v5e 16x16, 0.373 ms on v5p 4x4x4.
TEST_CASE("all-to-all on v5e 16x16 and v5p 4x4x4") {
  const Mesh square({{"X", 16}, {"Y", 16}});
  const Placement v5e(square, torus({16, 16}, {true, true}, link(45e9, 0)),
                      {{{0, 16, 1}}, {{1, 16, 1}}});
  const auto exchange = [](const Placement& placement, std::vector<AxisRef> axes) {
    return collective_cost(placement, over(std::move(axes), CollectiveKind::all_to_all, 64 * MiB))
        .transfer.count();
  };
  CHECK(exchange(v5e, {square.whole(0), square.whole(1)}) == Approx(2.98e-3).epsilon(0.01));
  const Placement v5p = cube(/*wraps=*/true, 90e9);
  CHECK(exchange(v5p, {v5p.mesh().whole(0), v5p.mesh().whole(1), v5p.mesh().whole(2)}) ==
        Approx(0.373e-3).epsilon(0.01));
}

// A dimension of 16 split 4 (outer) x 4 (inner). Inner groups are runs of 4 neighbours. Outer
// groups {r, r+4, r+8, r+12} go all the way round, four of them on the same links.
TEST_CASE("part of a dimension: runs are lines, strides share links") {
  const Machine ring = torus({16, 1}, {true, false}, link(1e9, 1));
  const Mesh mesh({{"outer", 4}, {"inner", 4}});
  const Placement placement(mesh, ring, {{{0, 4, 4}}, {{0, 4, 1}}});
  CHECK(lanes_of(placement, {mesh.whole(0)}) == std::vector<Lane>{{0, 4, 4, true, 8}});
  CHECK(lanes_of(placement, {mesh.whole(1)}) == std::vector<Lane>{{0, 4, 1, false, 3}});
  // Both together are the ring of 16, in whatever order they are named.
  CHECK(lanes_of(placement, {mesh.whole(1), mesh.whole(0)}) ==
        std::vector<Lane>{{0, 16, 1, true, 8}});

  // Each link carries 3/4 of the payload of four groups, half of it each way.
  CHECK(collective_cost(placement, over({mesh.whole(0)}, CollectiveKind::all_gather, 1000))
            .transfer.count() == Approx(4 * 750 / 2 / 1e9));
  // Without wraparound the end of each line takes 3/4 in through one link, all four groups
  // together.
  const Placement open(mesh, torus({16, 1}, {false, false}, link(1e9, 1)),
                       {{{0, 4, 4}}, {{0, 4, 1}}});
  CHECK(lanes_of(open, {mesh.whole(0)}) == std::vector<Lane>{{0, 4, 4, false, 12}});
  CHECK(collective_cost(open, over({mesh.whole(0)}, CollectiveKind::all_gather, 1000))
            .transfer.count() == Approx(4 * 750 / 1e9));
}

TEST_CASE("a part of an axis takes the digits of its spans") {
  // An axis of 16 over y (major) and x (minor) of 4x4.
  const Machine machine = torus({4, 4}, {true, true}, link(1e9, 0));
  const Mesh mesh({{"a", 16}});
  const Placement placement(mesh, machine, {{{1, 4, 1}, {0, 4, 1}}});
  CHECK(lanes_of(placement, {{0, 1, 4}}) == std::vector<Lane>{{1, 4, 1, true, 2}});
  CHECK(lanes_of(placement, {{0, 4, 4}}) == std::vector<Lane>{{0, 4, 1, true, 2}});
  // The middle: the minor half of y, the major half of x.
  CHECK(lanes_of(placement, {{0, 2, 4}}) ==
        std::vector<Lane>{{0, 2, 2, true, 2}, {1, 2, 1, false, 1}});
  const Placement odd(Mesh({{"a", 12}}), torus({4, 3}, {true, true}, link(1e9, 0)),
                      {{{0, 4, 1}, {1, 3, 1}}});
  CHECK_THROWS_WITH(lanes_of(odd, {{0, 3, 2}}),
                    "/mesh: a:(3)2 cuts a torus dimension where it cannot be cut");
}

// Rates 2 w along a wrapped x, w along an open y: 16 members, 15 shares come in over 3 links. With
// a stride of 8 on x its rate is w/4, and though a member would take in 3 shares at 5/4 w (2.4),
// the one share that each has to fetch along x takes longer (4).
TEST_CASE("several lanes at once: the narrowest way in counts") {
  const Mesh mesh({{"X", 4}, {"Y", 4}});
  const Placement mixed(mesh, torus({4, 4}, {true, false}, link(1e9, 0)),
                        {{{0, 4, 1}}, {{1, 4, 1}}});
  const Collective gather = over({mesh.whole(0), mesh.whole(1)}, CollectiveKind::all_gather, 1600);
  const CostBreakdown cost = collective_cost(mixed, gather);
  CHECK(cost.transfer.count() == Approx(15 * 100 / 3e9));
  CHECK(cost.algorithm == "ring on x, line on y");

  const Mesh strided({{"far", 2}, {"near", 8}, {"Y", 2}});
  const Placement narrow(strided, torus({16, 2}, {true, false}, link(1e9, 0)),
                         {{{0, 2, 8}}, {{0, 8, 1}}, {{1, 2, 1}}});
  CHECK(collective_cost(narrow,
                        over({strided.whole(0), strided.whole(2)}, CollectiveKind::all_gather, 400))
            .transfer.count() == Approx(100 / (2e9 / 8)));  // (2-1) share of 100 B at 2 w / 8
}

// A ring as listed, both ways, is what the lanes say where the list is a lane.
TEST_CASE("listed groups on one dimension cost what their axis costs") {
  for (const bool wraps : {true, false}) {
    const Placement placement = cube(wraps, 1e9);
    const Mesh& mesh = placement.mesh();
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                      CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
      const Collective by_axis = over({mesh.whole(1)}, kind, 4096);
      Collective listed = over({}, kind, 4096);
      listed.groups = mesh.groups({mesh.whole(1)});
      CAPTURE(wraps, name_of(kind));
      CHECK(levels_of(collective_cost(placement, listed)) == std::vector{LinkLevel::torus_y});
      CHECK(collective_cost(placement, listed).transfer.count() ==
            Approx(collective_cost(placement, by_axis).transfer.count()));
    }
  }
}

// Shift by one along a line of 4: the last message travels back over three links.
TEST_CASE("a permute is routed: hops and shared links") {
  const Placement line = cube(/*wraps=*/false, 1e9, 1);
  const Collective shift = over({line.mesh().whole(0)}, CollectiveKind::collective_permute, 1000);
  CHECK(collective_cost(line, shift).transfer.count() == Approx(1000 / 1e9));
  CHECK(collective_cost(line, shift).latency.count() == Approx(3));
  CHECK(collective_cost(cube(/*wraps=*/true, 1e9, 1), shift).latency.count() == Approx(1));
  // Chip (0,0,0) to (2,0,0) and (1,0,0) to (3,0,0) share the link between x = 1 and 2.
  Collective crossing = over({}, CollectiveKind::collective_permute, 1000);
  crossing.source_targets = {{0, 32}, {16, 48}};
  CHECK(collective_cost(line, crossing).transfer.count() == Approx(2 * 1000 / 1e9));
}

}  // namespace
}  // namespace shardsim::torus_cost_test
