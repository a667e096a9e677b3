#include "sim/collectives/slices_cost.hpp"

#include <catch2/catch.hpp>

#include "machines.hpp"
#include "sim/collectives/collective_cost.hpp"

namespace shardsim::slices_cost_test {
namespace {

using testing::link;
using testing::torus;

constexpr double ici = 100e9;  // a link, one direction
constexpr double dcn = 5e9;    // a chip

// `slices` rings of four chips, no latency within, 10 us between.
Machine rings(std::int64_t slices, double launch = 0) {
  Machine machine = torus({4, 1}, {true, false}, link(ici, 0));
  std::get<TorusProfile>(machine.profile.network).dcn = link(dcn, 10e-6);
  machine.profile.collective_launch.value = Seconds(launch);
  machine.slices = slices;
  machine.devices *= slices;
  return machine;
}

Collective over(const Mesh& mesh, CollectiveKind kind, const std::vector<std::string>& names,
                std::int64_t payload) {
  Collective collective;
  collective.kind = kind;
  collective.payload = Bytes(payload);
  for (const std::string& name : names) collective.axes.push_back(*mesh.parse(name));
  return collective;
}

CostBreakdown cost_of(const Machine& machine, const Mesh& mesh, const Collective& collective,
                      const DeviceOrder& order = {}) {
  return collective_cost(Placement(mesh, machine, collective_models::all_links, order), collective);
}

double seconds_in_ring(double payload) { return payload * 3 / 4 / (2 * ici); }  // one way

DeviceOrder along(std::vector<MeshAxis> axes) {
  DeviceOrder order;
  order.slices = std::move(axes);
  order.slices_place = {"", "/slices"};
  return order;
}

// jax's tests of create_hybrid_device_mesh (tests/mesh_utils_test.py): slices of 4x4x4,
// mesh_shape (1, 16, 4) with dcn_mesh_shape (2, 1, 1), and (1, 4, 16) with (1, 2, 1). The first of
// their shapes also follows from the first axis alone.
TEST_CASE("axes lie over slices and in them as jax's hybrid mesh has them") {
  Machine machine = torus({4, 4, 4}, {true, true, true}, link(ici, 0));
  std::get<TorusProfile>(machine.profile.network).dcn = link(dcn, 0);
  machine.slices = 2;
  machine.devices = 128;
  const auto inside = [&](const std::vector<std::int64_t>& logical) {
    return assign_mesh(*machine.torus, logical, {});
  };
  const auto placed = [&](std::vector<std::int64_t> sizes, const DeviceOrder& order) {
    const Mesh mesh({{"replica", sizes[0]}, {"data", sizes[1]}, {"model", sizes[2]}});
    return Placement(mesh, machine, collective_models::simulated, order);
  };
  const Placement first = placed({2, 16, 4}, {});
  CHECK(first.slices_along() == std::vector<std::int64_t>{2, 1, 1});
  CHECK(first.spans() == inside({1, 16, 4}));
  const Placement second = placed({1, 8, 16}, along({{"data", 2}}));
  CHECK(second.slices_along() == std::vector<std::int64_t>{1, 2, 1});
  CHECK(second.spans() == inside({1, 4, 16}));
}

TEST_CASE("without a word on it the first axes go over the slices") {
  const auto along_axes = [](const Mesh& mesh, std::int64_t slices) {
    return slices_along_axes({}, mesh, slices);
  };
  using Along = std::vector<std::int64_t>;
  CHECK(along_axes(Mesh({{"data", 4}, {"fsdp", 8}}), 4) == Along{4, 1});
  CHECK(along_axes(Mesh({{"data", 2}, {"fsdp", 8}}), 4) == Along{2, 2});
  CHECK(along_axes(Mesh({{"data", 6}, {"fsdp", 8}}), 4) == Along{2, 2});
  CHECK_THROWS_WITH(along_axes(Mesh({{"data", 2}, {"fsdp", 8}}), 3),
                    "the axes of mesh data=2 x fsdp=8 do not divide among 3 slices");
}

// The example of the header: levels one after the other.
TEST_CASE("a collective over both levels goes in levels") {
  const Mesh mesh({{"data", 2}, {"fsdp", 4}});
  const Machine machine = rings(2);
  const double payload = 80e6;
  const auto cost = [&](CollectiveKind kind) {
    return cost_of(machine, mesh, over(mesh, kind, {"data", "fsdp"}, 80'000'000));
  };
  const double between = payload / 4 / 2 / dcn;  // (k-1)/k of a quarter
  const CostBreakdown gather = cost(CollectiveKind::all_gather);
  CHECK(gather.algorithm == "ring over 2 slices, ring on x");
  CHECK(gather.transfer.count() == Approx(between + seconds_in_ring(payload)));
  CHECK(gather.latency.count() == Approx(10e-6));
  CHECK(levels_of(gather) == std::vector{LinkLevel::dcn, LinkLevel::torus_x});
  const CostBreakdown scatter = cost(CollectiveKind::reduce_scatter);
  CHECK(scatter.algorithm == "ring on x, ring over 2 slices");
  CHECK(scatter.transfer.count() == Approx(between + seconds_in_ring(payload)));
  const CostBreakdown reduce = cost(CollectiveKind::all_reduce);
  CHECK(reduce.algorithm == "ring on x, ring over 2 slices");
  CHECK(reduce.transfer.count() == Approx(2 * between + 2 * seconds_in_ring(payload)));
  CHECK(reduce.latency.count() == Approx(2 * 10e-6));
  // In the ring half of what a member sends crosses the middle: P / 4 over both ways; half of P
  // leaves the slice.
  const CostBreakdown exchange = cost(CollectiveKind::all_to_all);
  CHECK(exchange.transfer.count() == Approx(payload / 2 / dcn + payload / (2 * ici)));
  CHECK(exchange.algorithm == "ring on x, pairwise over 2 slices");
}

TEST_CASE("every collective in the slices has its launch") {
  const Mesh mesh({{"all", 8}});
  const auto launch = [&](CollectiveKind kind) {
    return cost_of(rings(2, 5e-6), mesh, over(mesh, kind, {"all"}, 1000)).launch.count();
  };
  CHECK(launch(CollectiveKind::all_gather) == Approx(5e-6));
  CHECK(launch(CollectiveKind::all_reduce) == Approx(5e-6));
}

TEST_CASE("an axis in the slices does not see the others") {
  const Mesh mesh({{"data", 2}, {"fsdp", 4}});
  const CostBreakdown cost =
      cost_of(rings(2), mesh, over(mesh, CollectiveKind::all_reduce, {"fsdp"}, 80'000'000));
  CHECK(cost.total().count() == Approx(2 * seconds_in_ring(80e6)));
  CHECK(levels_of(cost) == std::vector{LinkLevel::torus_x});
}

// jax-ml/scaling-book, training, "Scaling across pods": gradients of 2 * 2 D F bytes in bf16, each
// of M chips of a slice has their M-th part and reduces it over N / M slices with W_dcn:
//   T_comms = 2 * 2 * 2 D F / (M W_dcn), T_math = 8 B D F / (N C), so B / slice > C / W_dcn
// is needed, 73,440 of v5p (4.59e14 / 6.25e9). The book's ring is one over many slices; over k it
// takes (k - 1) / k of that.
TEST_CASE("the scaling book's batch per slice follows from the ring over DCN") {
  const std::int64_t slices = 64;
  Machine machine = rings(slices);
  auto& network = std::get<TorusProfile>(machine.profile.network);
  network.dcn = link(6.25e9, 0);
  const Mesh mesh({{"data", slices}, {"fsdp", 4}});
  const double d = 8192;
  const double f = 28672;
  const double gradients = 2 * 2 * d * f;
  const CostBreakdown cost = cost_of(
      machine, mesh,
      over(mesh, CollectiveKind::all_reduce, {"data"}, static_cast<std::int64_t>(gradients / 4)));
  const double book = 2 * gradients / (4 * 6.25e9);
  CHECK(cost.total().count() == Approx(book * 63 / 64));
  // The batch of a slice at which 8 B D F / (M C) is as long.
  const double batch = book * 4 * 4.59e14 / (8 * d * f);
  CHECK(batch == Approx(73'440).margin(0.5));
}

// Both devices of a chip send through its part of the host's NICs.
TEST_CASE("devices of a chip share what the chip has of the network") {
  Machine machine = rings(2);
  machine.torus->devices_per_chip = 2;
  machine.devices = 16;
  std::get<TorusProfile>(machine.profile.network).chip = ChipProfile{{2, {}}, link(1e12, 0)};
  const Mesh mesh({{"data", 2}, {"fsdp", 8}});
  const CostBreakdown cost =
      cost_of(machine, mesh, over(mesh, CollectiveKind::all_gather, {"data"}, 1'000'000));
  CHECK(cost.transfer.count() == Approx(1e6 / 2 / (dcn / 2)));
}

// A ring over all eight: three neighbours in each slice, and two messages between them, each from a
// chip of its own.
TEST_CASE("a permute goes both ways at once") {
  const Mesh mesh({{"all", 8}});
  const CostBreakdown cost =
      cost_of(rings(2), mesh, over(mesh, CollectiveKind::collective_permute, {"all"}, 1'000'000));
  CHECK(cost.latency.count() == Approx(10e-6));
  CHECK(cost.transfer.count() == Approx(1e6 / dcn));
  CHECK(levels_of(cost) == std::vector{LinkLevel::torus_x, LinkLevel::dcn});
  Collective inside;
  inside.kind = CollectiveKind::collective_permute;
  inside.payload = Bytes(1'000'000);
  inside.source_targets = {{0, 1}, {5, 6}};
  CHECK(cost_of(rings(2), mesh, inside).total().count() == Approx(1e6 / ici));
}

TEST_CASE("parts of axes and listed groups lie on slices as whole axes do") {
  const Mesh mesh({{"all", 16}});
  const Machine machine = rings(4);
  const auto kind = CollectiveKind::all_gather;
  const double payload = 80e6;
  // all = 4 slices x 4: the major half of it is half of the slices, the minor half half of a ring,
  // a line of 2: P / 2 through one link.
  const CostBreakdown major = cost_of(machine, mesh, over(mesh, kind, {"all:(1)2"}, 80'000'000));
  CHECK(major.algorithm == "ring over 2 slices");
  CHECK(major.transfer.count() == Approx(payload / 2 / dcn));
  const CostBreakdown minor = cost_of(machine, mesh, over(mesh, kind, {"all:(8)2"}, 80'000'000));
  CHECK(levels_of(minor) == std::vector{LinkLevel::torus_x});
  CHECK(minor.transfer.count() == Approx(payload / 2 / ici));
  const CostBreakdown both = cost_of(machine, mesh, over(mesh, kind, {"all:(2)4"}, 80'000'000));
  CHECK(both.transfer.count() ==
        Approx(payload / 2 / 2 / dcn + payload / 2 / ici));  // a ring of two, shared by two

  Collective listed;
  listed.kind = kind;
  listed.payload = Bytes(80'000'000);
  listed.groups = {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}};
  CHECK(cost_of(machine, mesh, listed).transfer.count() ==
        Approx(payload / 4 / 2 / dcn + seconds_in_ring(payload)));
  listed.groups = {{0, 1, 2, 4}};
  CHECK_THROWS_WITH(cost_of(machine, mesh, listed), Catch::Contains("unevenly"));
}

TEST_CASE("what several slices cannot be") {
  const Mesh mesh({{"data", 2}, {"fsdp", 4}});
  const auto place = [&](const DeviceOrder& order) {
    return Placement(mesh, rings(2), collective_models::simulated, order);
  };
  DeviceOrder row_major;
  row_major.kind = DeviceOrder::Kind::row_major;
  row_major.place = {"", "/placement"};
  CHECK_THROWS_WITH(place(row_major),
                    "/placement: on several slices a mesh lies where jax puts it");
  CHECK_THROWS_WITH(
      place(along({{"dta", 2}})),
      "/slices: unknown axis \"dta\"; the mesh has data, fsdp, did you mean \"data\"?");
  CHECK_THROWS_WITH(place(along({{"data", 4}})),
                    "/slices: axis \"data\" of size 2 does not divide among 4 slices");
}

}  // namespace
}  // namespace shardsim::slices_cost_test
