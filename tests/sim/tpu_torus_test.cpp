// Costs on slices of TPUs: what the compiler chooses, twisted tori, chips of several devices.
// Expectations are worked out beside them, with links of 1 GB/s.
#include <catch2/catch.hpp>

#include "machines.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/collectives/torus_lanes.hpp"
#include "sim/collectives/torus_routes.hpp"

namespace shardsim::tpu_torus_test {
namespace {

using testing::link;
using testing::torus;

constexpr double gigabyte = 1e9;

Machine slice(const std::string& device, std::vector<std::int64_t> sizes, bool wraps) {
  const std::size_t dimensions = sizes.size();
  Machine machine = torus(std::move(sizes), std::vector<bool>(dimensions, wraps), link(1e9, 0));
  machine.profile.device.name = device;
  return machine;
}

Collective whole(const Mesh& mesh, CollectiveKind kind) {
  Collective collective;
  collective.kind = kind;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    collective.axes.push_back(mesh.whole(axis));
  }
  collective.payload = Bytes(static_cast<std::int64_t>(gigabyte));
  return collective;
}

// One axis over the whole slice.
CostBreakdown cost_over(const Machine& machine, CollectiveKind kind,
                        CollectiveModel model = collective_models::simulated) {
  const Mesh mesh({{"device", machine.devices}});
  return collective_cost(Placement(mesh, machine, model), whole(mesh, kind));
}

// 1 GB over two rings on each of two chips of a ring of four: see below.
Machine two_on_a_chip() {
  Machine machine = slice("round", {4, 1}, /*wraps=*/true);
  std::get<TorusProfile>(machine.profile.network).chip = ChipProfile{{2, {}}, link(6e9, 0)};
  machine.torus->devices_per_chip = 2;
  machine.devices *= 2;
  return machine;
}

}  // namespace

// v5e beyond 16 chips gathers over one ring, which takes 255 of 256 shares in through two links; a
// plane could use four.
TEST_CASE("where the compiler takes one ring the cost does") {
  const Machine pod = slice("TPU v5e", {16, 16}, /*wraps=*/true);
  const CostBreakdown ring = cost_over(pod, CollectiveKind::all_gather);
  CHECK(ring.algorithm == "one ring over x+y");
  CHECK(ring.transfer.count() == Approx(255.0 / 256 / 2));
  const CostBreakdown ideal =
      cost_over(pod, CollectiveKind::all_gather, collective_models::all_links);
  CHECK(ideal.algorithm == "ring on x+y");
  CHECK(ideal.transfer.count() == Approx(255.0 / 256 / 4));
  CHECK(cost_over(pod, CollectiveKind::all_reduce).algorithm == "ring on x+y");
}

// Cubes: a reduce-scatter is an all-reduce and a slice, over six links twice 63 of 64 shares; so is
// an all-gather of a mesh, over three.
TEST_CASE("where the compiler rewrites a collective the cost is that of what it becomes") {
  const CostBreakdown scatter =
      cost_over(slice("TPU v5p", {4, 4, 4}, true), CollectiveKind::reduce_scatter);
  CHECK(scatter.algorithm == "all-reduce and slice: ring on x+y+z");
  CHECK(scatter.transfer.count() == Approx(2 * 63.0 / 64 / 6));
  const CostBreakdown gather =
      cost_over(slice("TPU v5p", {4, 4, 4}, false), CollectiveKind::all_gather);
  CHECK(gather.algorithm == "as all-reduce: line on x+y+z");
  CHECK(gather.transfer.count() == Approx(2 * 63.0 / 64 / 3));
  CHECK(cost_over(slice("TPU v5p", {4, 4, 4}, true), CollectiveKind::all_gather).algorithm ==
        "ring on x+y+z");
  CHECK(cost_over(slice("round", {4, 4, 4}, false), CollectiveKind::all_gather).algorithm ==
        "line on x+y+z");
}

TEST_CASE("the scheduler's latency in place of ours") {
  const CostBreakdown cost =
      cost_over(slice("TPU v5p", {4, 4, 4}, true), CollectiveKind::all_reduce,
                collective_models::tpu_scheduler);
  CHECK(cost.algorithm == "RotatedPincerEmitter UniDirectionNDRingStrategy");
  CHECK(cost.total().count() == Approx(2 * gigabyte / (6 * 93.35e9)).epsilon(1e-4));
  CHECK_THROWS_WITH(cost_over(slice("round", {4, 4, 4}, true), CollectiveKind::all_reduce,
                              collective_models::tpu_scheduler),
                    "/machine: what the TPU compiler's scheduler makes of this collective on "
                    "hand-made is not known");
}

// Counted by a breadth-first search over the wiring: from a chip of the twisted 4x4x8 there are 6,
// 18, 38, 43, 20 and 2 chips at 1, 2, ... 6 hops: 440 hops to 128 chips. Up from (3,0,0) is
// (0,0,4).
TEST_CASE("a twisted torus shortens ways") {
  Machine machine = slice("round", {4, 4, 8}, /*wraps=*/true);
  machine.torus->twisted = true;
  const Mesh mesh({{"X", 4}, {"Y", 4}, {"Z", 8}});
  const Placement placement(mesh, machine, {{{0, 4, 1}}, {{1, 4, 1}}, {{2, 8, 1}}});
  const auto at = [](std::int64_t x, std::int64_t y, std::int64_t z) {
    return (x * 4 + y) * 8 + z;
  };
  const TorusRoutes routes(placement);
  CHECK(routes.chip_hops(at(3, 0, 0), at(0, 0, 4)) == 1);
  CHECK(routes.chip_hops(at(0, 0, 0), at(3, 0, 0)) == 3);
  CHECK(routes.chip_hops(at(0, 0, 4), at(3, 0, 0)) == 1);
  std::int64_t hops = 0;
  for (std::int64_t device = 0; device < 128; ++device) hops += routes.chip_hops(0, device);
  CHECK(hops == 440);
  CHECK(collective_cost(placement, whole(mesh, CollectiveKind::all_to_all)).transfer.count() ==
        Approx(440.0 / 128 / 6));
  // Alone a dimension that twists does not close.
  CHECK_FALSE(lanes_of(placement, {mesh.whole(0)})[0].ring);
  CHECK(lanes_of(placement, {mesh.whole(0), mesh.whole(2)})[0].ring);
}

// A ring of four chips of two devices. Together they gather eight shares: six come into each chip
// through two links. One device of each chip gathers four, and so do the others beside them.
TEST_CASE("the devices of a chip share its links") {
  const Machine machine = two_on_a_chip();
  const Mesh mesh({{"chip", 4}, {"device", 2}});
  const Placement placement(mesh, machine, {{{0, 4, 1}}, {{2, 2, 1}}});
  const CostBreakdown all = collective_cost(placement, whole(mesh, CollectiveKind::all_gather));
  CHECK(all.transfer.count() == Approx(6.0 / 8 / 2));
  CHECK(all.algorithm == "ring on x, line on chip");
  Collective part = whole(mesh, CollectiveKind::all_gather);
  part.axes = {mesh.whole(0)};
  CHECK(collective_cost(placement, part).transfer.count() == Approx(3.0 / 4 / (2 * 0.5)));
  // Inside a chip: one share over the link of 6 GB/s.
  part.axes = {mesh.whole(1)};
  CHECK(collective_cost(placement, part).transfer.count() == Approx(1.0 / 2 / 6));
  CHECK(levels_of(collective_cost(placement, part)) == std::vector{LinkLevel::torus_chip});
  // Both devices of a chip send to the next chip over one link.
  part.kind = CollectiveKind::collective_permute;
  part.axes = {mesh.whole(0)};
  CHECK(collective_cost(placement, part).transfer.count() == Approx(2.0));
}

}  // namespace shardsim::tpu_torus_test
