#include "sim/step/simulate.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/step/resources.hpp"
#include "spans.hpp"

namespace shardsim {
namespace {

using testing::PlanBuilder;
using testing::round_node;
using testing::Span;
using testing::spans;

Result on_node(const PlanBuilder& builder) {
  return simulate(builder.plan, round_node(builder.plan.mesh.devices()), {});
}

TEST_CASE("streams run side by side, each in issue order") {
  PlanBuilder b;
  const TaskId gather0 = b.gather(30);              // 0..30
  const TaskId gather1 = b.gather(50);              // 30..80
  const TaskId compute0 = b.kernel(40, {gather0});  // 30..70
  b.kernel(20, {gather1});                          // 80..100: waits for the gather
  b.kernel(10, {compute0});                         // 100..110: free to run at 70, but issued later
  const Result result = on_node(b);
  CHECK(spans(result.programs[0]) ==
        std::vector<Span>{{0, 30}, {30, 80}, {30, 70}, {80, 100}, {100, 110}});
  CHECK(result.step_time == SimTime(110));
  CHECK(result.programs[0].compute_time == SimTime(70));
  CHECK(result.programs[0].communication_time == SimTime(80));
  CHECK(result.programs[0].exposed_time == SimTime(40));  // 0..30 and 70..80
  CHECK(result.programs[0].idle_time == SimTime(0));
}

// Layer i computes for c; its gather takes g and may run during layer i-1. With c >= g only the
// first gather is seen: step = g + layers c. Otherwise every layer waits: step = layers g + c.
TEST_CASE("prefetch hides the gathers exactly when computing takes as long") {
  const auto step = [](std::int64_t c, std::int64_t g) {
    PlanBuilder b;
    std::vector<TaskId> layers;
    for (int i = 0; i < 5; ++i) {
      std::vector<TaskId> window;  // one layer ahead
      if (i >= 2) window = {layers[static_cast<std::size_t>(i - 2)]};
      const TaskId gather = b.gather(g, window);
      layers.push_back(b.kernel(c, {gather}));
    }
    return on_node(b);
  };
  CHECK(step(100, 60).step_time == SimTime(60 + 5 * 100));
  CHECK(step(100, 100).step_time == SimTime(100 + 5 * 100));
  CHECK(step(100, 100).programs[0].exposed_time == SimTime(100));
  CHECK(step(100, 101).step_time == SimTime(5 * 101 + 100));
  CHECK(step(100, 101).programs[0].exposed_time == SimTime(101 + 4));
}

// Terms with fractions of a picosecond: rounded up once, not one by one.
TEST_CASE("a collective alone takes its closed form, to the picosecond") {
  Machine machine =
      testing::cluster(6, 3, testing::link(0.7e12, 1.3e-12), testing::link(0.3e12, 13.1e-12));
  machine.profile.collective_launch.value = Seconds(4.4e-12);
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    for (std::int64_t size = 1; size < 50; ++size) {
      PlanBuilder b({{"x", 6}});
      b.gather(size);
      b.plan.collectives[0].kind = kind;
      const CostBreakdown cost =
          collective_cost(Placement(b.plan.mesh, machine), b.plan.collectives[0]);
      CHECK(simulate(b.plan, machine, {}).step_time == round_up(cost.total()));
    }
  }
}

TEST_CASE("collectives on the same links at the same time share them") {
  PlanBuilder b;
  const TaskId wait = b.kernel(50);
  b.gather(100, {}, 1);
  b.gather(100, {wait}, 2);
  CHECK(spans(on_node(b).programs[0]) == std::vector<Span>{{0, 50}, {0, 150}, {50, 200}});
}

TEST_CASE("collectives on different links do not slow each other") {
  PlanBuilder b({{"nodes", 2}, {"x", 2}});
  b.gather(100, {}, 1, /*axis=*/0);
  b.gather(100, {}, 2, /*axis=*/1);
  const Machine machine = testing::cluster(4, 2, testing::link(1e12, 0), testing::link(1e12, 0));
  CHECK(spans(simulate(b.plan, machine, {}).programs[0]) == std::vector<Span>{{0, 100}, {0, 100}});
}

// Launch of 40 ps: the second is in its launch while the first has the links alone for 40..50.
TEST_CASE("launch and latency are not slowed by others") {
  PlanBuilder b;
  const TaskId wait = b.kernel(10);
  b.gather(100, {}, 1);
  b.gather(100, {wait}, 2);
  Machine machine = round_node(2);
  machine.profile.collective_launch.value = Seconds(40e-12);
  // First: 10 alone from 40 to 50, then 90 at half speed until 230; second: 10 left, ends at 240.
  CHECK(spans(simulate(b.plan, machine, {}).programs[0]) ==
        std::vector<Span>{{0, 10}, {0, 230}, {10, 240}});
}

TEST_CASE("a message starts when both ends are ready and ends for both") {
  PlanBuilder b({{"stage", 2}});
  b.plan.programs[0].devices = {0};
  const TaskId forward = b.kernel(70);
  b.transfer(/*sends=*/true, 1, 30, {forward});
  b.add_program("second", {1});
  b.current = 1;
  const TaskId received = b.transfer(/*sends=*/false, 0, 30);
  b.kernel(50, {received});
  const Result result = on_node(b);
  CHECK(spans(result.programs[0]) == std::vector<Span>{{0, 70}, {70, 100}});
  CHECK(spans(result.programs[1]) == std::vector<Span>{{70, 100}, {100, 150}});
  CHECK(result.programs[0].idle_time == SimTime(50));
  CHECK(result.programs[1].idle_time == SimTime(70));
  REQUIRE(result.communication.size() == 1);
  CHECK(result.communication[0].count == 1);
  CHECK(result.communication[0].exposed == SimTime(60));  // 30 at each end
  CHECK(result.compute_balance == Approx((70.0 + 50) / 2 / 70));
}

TEST_CASE("messages that pass each other do not share; messages the same way do") {
  const auto step = [](bool opposite) {
    PlanBuilder b({{"stage", 2}});
    b.plan.programs[0].devices = {0};
    b.transfer(true, 1, 100, {}, 1);
    b.transfer(!opposite, 1, 100, {}, 2);
    b.add_program("second", {1});
    b.current = 1;
    b.transfer(false, 0, 100, {}, 1);
    b.transfer(opposite, 0, 100, {}, 2);
    return on_node(b).step_time;
  };
  CHECK(step(/*opposite=*/true) == SimTime(100));
  CHECK(step(/*opposite=*/false) == SimTime(200));
}

// Both stages want to receive before they send.
TEST_CASE("programs that wait for each other are a deadlock") {
  PlanBuilder b({{"stage", 2}});
  b.plan.programs[0].devices = {0};
  b.transfer(false, 1, 1);
  b.transfer(true, 1, 1);
  b.add_program("second", {1});
  b.current = 1;
  b.transfer(false, 0, 1);
  b.transfer(true, 0, 1);
  CHECK_THROWS_WITH(on_node(b), "plan: deadlock: task 0 (task 0) of program all never runs");
}

// The first program waits for nobody.
TEST_CASE("a deadlock is told by the task's place in its own program") {
  PlanBuilder b({{"stage", 3}});
  b.plan.programs[0].devices = {0};
  b.kernel(1);
  b.kernel(1);
  for (const int stage : {1, 2}) {
    b.add_program(stage == 1 ? "second" : "third", {stage});
    b.current = static_cast<std::size_t>(stage);
    b.transfer(false, 3 - stage, 1);
    b.transfer(true, 3 - stage, 1);
  }
  CHECK_THROWS_WITH(on_node(b), "plan: deadlock: task 0 (task 0) of program second never runs");
}

TEST_CASE("matmuls of a type without a peak have a note, what moves memory has none") {
  const auto notes_of = [](KernelClass kernel_class) {
    PlanBuilder b;
    b.kernel(10);
    b.plan.kernels[0].kernel_class = kernel_class;
    b.plan.kernels[0].dtype = DType::f8;
    return on_node(b).notes.size();
  };
  CHECK(notes_of(KernelClass::matmul) == 1);
  CHECK(notes_of(KernelClass::memory) == 0);
}

TEST_CASE("what is not simulated is refused") {
  PlanBuilder b({{"stage", 2}});
  SECTION("host copies over a link that the machine does not know") {
    b.host_copy(TaskKind::to_host, 1);
    CHECK_THROWS_WITH(on_node(b),
                      "machine hand-made: the step copies to or from the host, and the profile "
                      "does not say how fast: give it a device.host_link");
  }
  // SimTime has 63 bits of picoseconds.
  const std::int64_t longest = longest_step.count();
  const auto refused = [](const char* what, std::int64_t picoseconds) {
    return fmt::format("machine hand-made: {} {:.3g} s, and steps are simulated up to {:.3g} s",
                       what, to_seconds(SimTime(picoseconds)).count(),
                       to_seconds(longest_step).count());
  };
  SECTION("a task that takes longer than a step may") {
    b.kernel(2 * longest);
    CHECK_THROWS_WITH(on_node(b), refused("a task takes", 2 * longest));
  }
  SECTION("tasks that together do") {
    for (int i = 0; i < 3; ++i) b.kernel(longest / 2);
    CHECK_THROWS_WITH(on_node(b), refused("the tasks of the step take", 3 * (longest / 2)));
  }
  SECTION("collectives with members that no program has") {
    b.plan.programs[0].devices = {0};
    b.gather(1);
    CHECK_THROWS_WITH(on_node(b),
                      "program all: all-gather over stage reaches devices that no program has");
  }
  SECTION("a message that nobody receives is a bug") {
    b.add_program("second", {1});
    b.transfer(true, 1, 1);
    CHECK_THROWS_AS(on_node(b), std::logic_error);
  }
}

// 2 devices at 1e12 flop/s for 1 us could do 2e6 flops; the model needs half of that.
TEST_CASE("utilization and token rate") {
  PlanBuilder b;
  b.plan.kernels.push_back({"mm", KernelClass::matmul, DType::bf16, Flops(1e6), Bytes(0)});
  Task task;
  b.plan.names.emplace_back("mm");
  (void)b.plan.programs[0].add_task(task, {});
  b.plan.subject.model_flops = Flops(1e6);
  b.plan.subject.model_flops_full_attention = Flops(1.5e6);
  b.plan.subject.tokens_per_step = 10;
  const Result result = on_node(b);
  CHECK(result.step_time == SimTime(1'000'000));
  CHECK(result.mfu == Approx(0.5));
  CHECK(result.mfu_full_attention == Approx(0.75));
  CHECK(result.tokens_per_second_per_device == Approx(10 / 1e-6 / 2));
}

TEST_CASE("a row per kind and axes, with its reasons") {
  PlanBuilder b({{"x", 2}, {"y", 2}});
  b.gather(10, {}, 1, 0, "weights");
  b.gather(10, {}, 1, 0, "weights");
  b.gather(20, {}, 1, 1, "bias");
  b.plan.collectives.back().kind = CollectiveKind::all_reduce;  // twice: 40 ps
  const Result result = on_node(b);
  REQUIRE(result.communication.size() == 2);
  const CommunicationRow& reduce = result.communication[0];
  CHECK(reduce.kind == "all-reduce");
  CHECK(reduce.axes == std::vector<std::string>{"y"});
  CHECK(reduce.time == SimTime(40));
  CHECK(reduce.what == "bias");
  const CommunicationRow& gather = result.communication[1];
  CHECK(gather.count == 2);
  CHECK(gather.payload == Bytes(40));
  CHECK(gather.wire_bytes_per_device == Bytes(20));
  CHECK(gather.exposed == SimTime(20));
  CHECK(gather.what == "weights");
  REQUIRE(result.notes.size() == 1);  // an all-reduce inside a node
  CHECK_THAT(result.notes[0], Catch::Contains("rings only"));
}

}  // namespace
}  // namespace shardsim
