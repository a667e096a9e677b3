// What runs at the same time, against what can be worked out by hand.
#include <catch2/catch.hpp>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/step/lowering.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {
namespace {

using testing::link;
using testing::PlanBuilder;

struct Took {
  std::vector<std::int64_t> picoseconds;  // by task of the first program

  explicit Took(const Result& result) {
    for (const TaskTimes& task : result.programs[0].tasks) {
      picoseconds.push_back((task.end - task.start).count());
    }
  }
};

std::vector<std::int64_t> took(const PlanBuilder& b, const Machine& machine) {
  return Took(simulate(b.plan, machine, {})).picoseconds;
}

// Two gathers of so many bytes at once on a torus of 4x4, along one dimension each, or both along
// the same.
std::vector<std::int64_t> took_along(int first_axis, int second_axis, std::int64_t bytes,
                                     const Machine& torus) {
  PlanBuilder gathers({{"x", 4}, {"y", 4}});
  gathers.gather(bytes, {}, 1, first_axis);
  gathers.gather(bytes, {}, 2, second_axis);
  return took(gathers, torus);
}

// A ring of 4 takes 3/4 P in over two links of 1 B/ps: a gather of 2 n bytes 3 n / 4 ps.
TEST_CASE("on a torus collectives along different dimensions do not slow each other") {
  const Machine torus = testing::torus({4, 4}, {true, true}, link(1e12, 0));
  CHECK(took_along(0, 1, 400, torus) == std::vector<std::int64_t>{300, 300});
  CHECK(took_along(0, 0, 400, torus) == std::vector<std::int64_t>{600, 600});
}

// The gather along x of 4 devices takes 300 ps, the kernels 400 each; the second of them waits for
// no gather. In turn: kernel, gather, kernel.
TEST_CASE("collectives that a TPU runs in turn with kernels are hidden behind none") {
  PlanBuilder step({{"x", 4}, {"y", 4}});
  step.kernel(400);
  step.gather(400, {}, 1, 0);
  step.kernel(400);
  Machine machine = testing::torus({4, 4}, {true, true}, link(1e12, 0));
  CHECK(simulate(step.plan, machine, {}).step_time == SimTime(800));
  std::get<TorusProfile>(machine.profile.network).synchronous = {{"all-gather"}, {}};
  CHECK(simulate(step.plan, machine, {}).step_time == SimTime(400 + 300 + 400));
  std::get<TorusProfile>(machine.profile.network).synchronous = {{"all-reduce"}, {}};
  CHECK(simulate(step.plan, machine, {}).step_time == SimTime(800));
}

// As above: where the product that is summed does more operations in the time of a byte on a link
// than the device does, the compiler makes permutes of it, which go on beside; a GPU's does not.
TEST_CASE("a windowed collective is hidden where its product sums over enough") {
  PlanBuilder step({{"x", 4}, {"y", 4}});
  step.kernel(400);
  step.gather(50, {}, 1, 0);
  step.kernel(400);
  // 1e12 operations a second, 8 in the time of a byte.
  Machine machine = testing::torus({4, 4}, {true, true}, link(1.25e11, 0));
  std::get<TorusProfile>(machine.profile.network).synchronous = {{"all-gather"}, {}};
  step.plan.collectives[0].contracted = 8;
  CHECK(simulate(step.plan, machine, {}).step_time == SimTime(800));
  step.plan.collectives[0].contracted = 7;
  CHECK(simulate(step.plan, machine, {}).step_time == SimTime(400 + 300 + 400));
}

// A ring of 8 and a line of 2, shares of P / 16 = 50 bytes: 7 / 2 ps a byte along x, 1 along y,
// 15 / 3 along both, which is the most: both are full.
TEST_CASE("over all dimensions a collective takes all of each") {
  const Machine torus = testing::torus({8, 2}, {true, false}, link(1e12, 0));
  const Placement placement(Mesh({{"x", 8}, {"y", 2}}), torus);
  Collective gather;
  gather.kind = CollectiveKind::all_gather;
  gather.axes = {placement.mesh().whole(0), placement.mesh().whole(1)};
  gather.payload = Bytes(800);
  const CostBreakdown cost = collective_cost(placement, gather);
  CHECK(cost.transfer.count() == Approx(250e-12));
  REQUIRE(cost.links.size() == 2);
  CHECK(cost.links[0].out == 1);
  CHECK(cost.links[1].out == 1);
  // Half of the members of each send to the other half: 16 / 8 of P over two links along x, 1 / 2
  // over one along y.
  gather.kind = CollectiveKind::all_to_all;
  const CostBreakdown exchange = collective_cost(placement, gather);
  CHECK(exchange.links[0].out == 1);
  CHECK(exchange.links[1].out == Approx(0.5));
}

// Shares of one byte. Lines of 16 and 2: 15 ps along x, 1 along y, 31 / 2 = 15.5 along both. Where
// y closes a pair has two links: 31 / 3 = 10.3 along both, x bounds with 15, and in these 16 bytes
// come along y at 2.
TEST_CASE("a lane that does not bound has room") {
  const Machine torus = testing::torus({16, 2}, {false, false}, link(1e12, 0));
  const Placement placement(Mesh({{"x", 16}, {"y", 2}}), torus);
  Collective gather;
  gather.kind = CollectiveKind::all_gather;
  gather.axes = {placement.mesh().whole(0), placement.mesh().whole(1)};
  gather.payload = Bytes(32);
  CHECK(collective_cost(placement, gather).transfer.count() == Approx(15.5e-12));
  CHECK(collective_cost(placement, gather).links[1].out == 1);
  const Machine half_closed = testing::torus({16, 2}, {false, true}, link(1e12, 0));
  const Placement other(placement.mesh(), half_closed);
  const CostBreakdown cost = collective_cost(other, gather);
  CHECK(cost.transfer.count() == Approx(15e-12));
  CHECK(cost.links[0].out == 1);
  CHECK(cost.links[1].out == Approx(16.0 / 2 / 15));
}

TEST_CASE("permutes up and down a ring do not meet") {
  const Machine ring = testing::torus({4, 4}, {true, true}, link(1e12, 0));
  const auto step = [&](std::int64_t second_shift) {
    PlanBuilder b({{"x", 16}});
    for (const std::int64_t shift : {std::int64_t{1}, second_shift}) {
      b.gather(50, {}, b.plan.collectives.empty() ? 1 : 2);
      Collective& permute = b.plan.collectives.back();
      permute.kind = CollectiveKind::collective_permute;
      permute.axes.clear();
      for (std::int64_t row = 0; row < 4; ++row) {
        for (std::int64_t i = 0; i < 4; ++i) {
          permute.source_targets.emplace_back(4 * row + i, 4 * row + (i + shift + 4) % 4);
        }
      }
    }
    return took(b, ring);
  };
  CHECK(step(-1) == std::vector<std::int64_t>{100, 100});
  CHECK(step(1) == std::vector<std::int64_t>{200, 200});
}

// A: all-gather over 2 nodes of 2, W = 3/4 * 1600 = 1200 bytes: 1200 / (2 * 0.125) = 4800 ps over
// the NICs, 1200 ps inside: a quarter of NVLink. B: 100 ps of NVLink. At 1 / 1.25 B ends at 125,
// when A has done 100: 4825.
TEST_CASE("a collective between nodes takes of NVLink what it needs") {
  const Machine machine = testing::cluster(4, 2, link(1e12, 0), link(0.125e12, 0));
  PlanBuilder b({{"nodes", 2}, {"x", 2}});
  b.gather(800, {}, 1);
  b.plan.collectives.back().axes = {b.plan.mesh.whole(0), b.plan.mesh.whole(1)};
  b.gather(100, {}, 2, /*axis=*/1);
  CHECK(took(b, machine) == std::vector<std::int64_t>{4825, 125});
}

// W = 1000 bytes at 0.1 B/ps: 10000 ps, in which 3 W go to and from a memory of 1 B/ps: 0.3 of it.
// A kernel of 100 bytes takes all: 1.3 x = 1, and the gather loses the 30 ps that it lasts longer.
TEST_CASE("kernels that move bytes and collectives share memory") {
  Machine machine = testing::cluster(2, 2, link(0.1e12, 0), link(0.1e12, 0));
  machine.profile.device.memory_bandwidth.value = Bandwidth(1e12);
  PlanBuilder b;
  b.gather(1000, {}, 1);
  b.kernel(0);
  b.plan.kernels.back() = {"copy", KernelClass::memory, DType::bf16, Flops(0), Bytes(100)};
  CHECK(took(b, machine) == std::vector<std::int64_t>{10030, 130});
  // One that computes for 100 ps and moves 50 bytes leaves the gather all it wants.
  b.plan.kernels.back() = {"mm", KernelClass::matmul, DType::bf16, Flops(100), Bytes(50)};
  CHECK(took(b, machine) == std::vector<std::int64_t>{10000, 100});
}

// NCCL runs an all-gather of 4 GiB over 8 H100s in rings on 24 thread blocks, for 10 ms or more.
// Attention of 1 ms alone has 108 of 132 multiprocessors, a product goes without 1.6 for each.
TEST_CASE("kernels have the multiprocessors that collectives leave") {
  Machine machine = make_machine(load_profile("dgx-h100", {}), 8, std::nullopt, {});
  machine.profile.device.power.reset();  // a kernel alone would be slowed down by it
  const DeviceProfile& device = machine.profile.device;
  PlanBuilder b({{"x", 8}});
  b.gather(std::int64_t{1} << 31, {}, 1);
  const double peak = device.peak.at(DType::bf16).value.count() * device.matmul_efficiency.value;
  b.kernel(0);
  b.plan.kernels.back().flops = Flops(peak * 1e-3);
  const std::vector<std::int64_t> both = took(b, machine);
  const CostBreakdown alone =
      collective_cost(Placement(b.plan.mesh, machine), b.plan.collectives[0]);
  CHECK(alone.thread_blocks == 24);
  const auto launch = round_up(device.kernel_launch.value).count();
  CHECK(device.sms_per_block.value().value == 1.6);
  CHECK(static_cast<double>(both[1] - launch) == Approx(1e9 * 132 / (132 - 24 * 1.6)));
  CHECK(both[0] == round_up(alone.total()).count());

  Kernel& kernel = b.plan.kernels.back();
  kernel.kernel_class = KernelClass::attention;
  kernel.flops = Flops(kernel.flops.count() * device.attention_efficiency.value /
                       device.matmul_efficiency.value);
  CHECK(static_cast<double>(took(b, machine)[1] - launch) == Approx(1e9 * 132 / 108));

  Machine unknown = machine;
  unknown.profile.device.sms.reset();
  CHECK(took(b, unknown)[1] == launch + 1'000'000'000);
  const std::vector<std::string> notes = simulate(b.plan, unknown, {}).notes;
  CHECK(std::count(notes.begin(), notes.end(),
                   "how many multiprocessors H100 SXM5 80 GB has is not known: collectives take "
                   "none") == 1);
}

// Small arrays get by with fewer: 64 KiB over 4 H100s goes by Ring, LL, at 512 threads of 8 bytes
// for each of 4 ranks: 4 thread blocks.
TEST_CASE("small arrays take few thread blocks") {
  const Machine machine = make_machine(load_profile("dgx-h100", {}), 4, std::nullopt, {});
  const Placement placement(Mesh({{"x", 4}}), machine);
  Collective reduce;
  reduce.axes = {placement.mesh().whole(0)};
  reduce.payload = Bytes(64 * KiB);
  const CostBreakdown cost = collective_cost(placement, reduce);
  REQUIRE(cost.algorithm + " " + cost.protocol == "Ring LL");
  CHECK(cost.thread_blocks == 4);
}

TEST_CASE("two kernels at once share the device") {
  PlanBuilder b;
  b.kernel(100, {}, 0);
  b.kernel(300, {}, 1);
  CHECK(took(b, testing::round_node(2)) == std::vector<std::int64_t>{200, 400});
}

Machine network(const std::string& shape, std::int64_t devices) {
  const std::string text = shape + ",bandwidth=1TB/s,latency=0s,device=h100)";
  return make_machine(load_profile(text, {}), devices, std::nullopt, {});
}

// A ring of 4 both ways takes 3/4 P in over two links: 2 n bytes take 3 n / 4 ps.
TEST_CASE("on a network written in place collectives share the links that both are on") {
  const Machine torus = network("torus(4x4", 16);
  CHECK(took_along(0, 1, 4000, torus) == std::vector<std::int64_t>{3000, 3000});
  CHECK(took_along(0, 0, 4000, torus) == std::vector<std::int64_t>{6000, 6000});
}

TEST_CASE("programs on different links of a network do not slow each other") {
  const auto step = [](int programs) {
    PlanBuilder b({{"stage", 2}, {"x", 4}});
    b.plan.programs[0].devices = {0, 1, 2, 3};
    b.gather(4000, {}, 1, /*axis=*/1);
    b.gather(4000, {}, programs == 1 ? 2 : 1, 1);
    if (programs == 2) {
      b.add_program("second", {4, 5, 6, 7});
      b.current = 1;
      b.gather(4000, {}, 1, 1);
    }
    const Machine ring = network("ring(", 8);
    const Lowered lowered = lower(b.plan, Placement(b.plan.mesh, ring), {});
    return run(lowered.graph).end;
  };
  const std::vector<SimTime> alone = step(2);
  CHECK(alone[2] == alone[0]);        // beside the first of the other program
  CHECK(alone[1] == 2 * alone[0]);    // one after the other
  CHECK(step(1)[0] == 2 * alone[0]);  // both at once on the same links
}

// On a ring of 8, messages from 0 to 2 and from 1 to 3 are both on the link from 1 to 2.
TEST_CASE("a message takes the links on its way, whichever programs it is between") {
  const auto step = [](bool first_is_zero, bool with_second) {
    PlanBuilder b({{"x", 8}});
    b.plan.programs[0].devices = {first_is_zero ? 0 : 1};
    b.add_program("second", {first_is_zero ? 1 : 0});
    b.add_program("third", {2});
    b.add_program("fourth", {3});
    const std::size_t zero = first_is_zero ? 0 : 1;
    const auto send = [&](std::size_t from, std::size_t to) {
      b.current = from;
      b.transfer(/*sends=*/true, static_cast<int>(to), 1000);
      b.current = to;
      b.transfer(/*sends=*/false, static_cast<int>(from), 1000);
    };
    send(zero, 2);
    if (with_second) send(1 - zero, 3);
    return simulate(b.plan, network("ring(8", 8), {}).step_time;
  };
  const SimTime alone = step(/*first_is_zero=*/true, /*with_second=*/false);
  CHECK(step(true, true) == 2 * alone);
  CHECK(step(false, true) == 2 * alone);  // however programs are numbered
}

bool says_that_links_are_too_many(const Result& result) {
  return std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
    return note.find("too many to follow one by one") != std::string::npos;
  });
}

// 4096 devices is as far as links are followed: beyond, as if each was on all of them.
TEST_CASE("networks too large to follow each link of share as one") {
  PlanBuilder b({{"x", 128}, {"y", 64}});
  b.gather(8192, {}, 1, /*axis=*/0);
  b.gather(8192, {}, 2, /*axis=*/1);
  const Machine torus = network("torus(128x64", 8192);
  CHECK(says_that_links_are_too_many(simulate(b.plan, torus, {})));
  // 127 and 63 steps of 64 and 128 bytes over two links; half pace while both are under way.
  CHECK(took(b, torus) == std::vector<std::int64_t>{8128 + 8064, 2 * 8064});

  // Kernels are on no link: beside them the collectives of one stream meet nobody.
  PlanBuilder one({{"x", 128}, {"y", 64}});
  one.kernel(100);
  one.gather(8192, {}, 1, /*axis=*/0);
  CHECK_FALSE(says_that_links_are_too_many(simulate(one.plan, torus, {})));
}

}  // namespace
}  // namespace shardsim
