// Programs beside each other: what passes between them, and what they do together. Machines of one
// byte and one flop per picosecond (machines.hpp), so that times are derived beside the cases.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "machines.hpp"
#include "plan/plan_io.hpp"
#include "plan_builder.hpp"
#include "sim/step/simulate.hpp"
#include "sim/step/time_parts.hpp"
#include "spans.hpp"

namespace shardsim::programs_test {
namespace {

using testing::PlanBuilder;
using testing::round_node;
using testing::Span;
using testing::spans;
using Spans = std::vector<Span>;

Result on_node(const PlanBuilder& builder, CollectiveModel model = collective_models::simulated) {
  SimulationOptions options;
  options.collectives = model;
  return simulate(builder.plan, round_node(builder.plan.mesh.devices()), options);
}

// "first" on the devices of the first list, "second" on those of the second.
PlanBuilder two_programs(const std::vector<std::int64_t>& first,
                         const std::vector<std::int64_t>& second) {
  PlanBuilder b({{"x", static_cast<std::int64_t>(first.size() + second.size())}});
  b.plan.programs[0].name = "first";
  b.plan.programs[0].devices = first;
  b.add_program("second", second);
  return b;
}

// Runs collective 0 of the plan in the current program once more.
void run_collective(PlanBuilder& b, const std::vector<TaskId>& after = {}) {
  Task task;
  task.kind = TaskKind::collective;
  task.stream = 1;
  (void)b.plan.programs[b.current].add_task(task, after);
}

// A pipeline of two stages and two microbatches, one device each. Forward takes 10 ps, backward 20,
// a message of activations or gradients 5:
//
//   first    F0 0-10  F1 10-20                                     B0 50-70        B1 80-100
//   there       10-15    20-25
//   second      F0 15-25  B0 25-45  F1 45-55  B1 55-75
//   back                     45-50               75-80
constexpr const char* two_stages = R"({
  "schema": "shardsim/plan/1",
  "subject": {"model": "by hand", "strategy": "two stages", "parameters": 0, "tokens_per_step": 0,
              "model_flops": 0, "model_flops_full_attention": 0},
  "mesh": {"stage": 2}, "devices": 2, "collectives": [],
  "kernels": [{"op": "forward", "class": "matmul", "dtype": "bf16", "flops": 10, "bytes": 0},
              {"op": "backward", "class": "matmul", "dtype": "bf16", "flops": 20, "bytes": 0}],
  "transfers": [
    {"peer_program": 1, "sends": true, "dtype": "bf16", "payload_bytes": 5, "reason": "activations"},
    {"peer_program": 1, "sends": false, "dtype": "bf16", "payload_bytes": 5, "reason": "gradients"},
    {"peer_program": 0, "sends": false, "dtype": "bf16", "payload_bytes": 5, "reason": "activations"},
    {"peer_program": 0, "sends": true, "dtype": "bf16", "payload_bytes": 5, "reason": "gradients"}],
  "names": ["F", "B", "activations", "gradients"],
  "programs": [
    {"name": "first", "devices": [0], "streams": ["compute", "there", "back"], "buffers": [],
     "tasks": [
      {"kind": "kernel", "work": 0, "name": "F", "microbatch": 0, "stream": 0, "after": [], TASK},
      {"kind": "transfer", "work": 0, "name": "activations", "microbatch": 0, "stream": 1, "after": [0], TASK},
      {"kind": "kernel", "work": 0, "name": "F", "microbatch": 1, "stream": 0, "after": [], TASK},
      {"kind": "transfer", "work": 0, "name": "activations", "microbatch": 1, "stream": 1, "after": [2], TASK},
      {"kind": "transfer", "work": 1, "name": "gradients", "microbatch": 0, "stream": 2, "after": [], TASK},
      {"kind": "kernel", "work": 1, "name": "B", "microbatch": 0, "stream": 0, "after": [4], TASK},
      {"kind": "transfer", "work": 1, "name": "gradients", "microbatch": 1, "stream": 2, "after": [], TASK},
      {"kind": "kernel", "work": 1, "name": "B", "microbatch": 1, "stream": 0, "after": [6], TASK}]},
    {"name": "second", "devices": [1], "streams": ["compute", "there", "back"], "buffers": [],
     "tasks": [
      {"kind": "transfer", "work": 2, "name": "activations", "microbatch": 0, "stream": 1, "after": [], TASK},
      {"kind": "kernel", "work": 0, "name": "F", "microbatch": 0, "stream": 0, "after": [0], TASK},
      {"kind": "kernel", "work": 1, "name": "B", "microbatch": 0, "stream": 0, "after": [1], TASK},
      {"kind": "transfer", "work": 3, "name": "gradients", "microbatch": 0, "stream": 2, "after": [2], TASK},
      {"kind": "transfer", "work": 2, "name": "activations", "microbatch": 1, "stream": 1, "after": [], TASK},
      {"kind": "kernel", "work": 0, "name": "F", "microbatch": 1, "stream": 0, "after": [4], TASK},
      {"kind": "kernel", "work": 1, "name": "B", "microbatch": 1, "stream": 0, "after": [5], TASK},
      {"kind": "transfer", "work": 3, "name": "gradients", "microbatch": 1, "stream": 2, "after": [6], TASK}]}],
  "padding": [], "notes": []})";

TEST_CASE("two stages with messages both ways, written by hand") {
  std::string text = two_stages;
  const std::string same = R"("layer": -1, "phase": "forward", "recompute": false)";
  for (std::size_t at = text.find("TASK"); at != std::string::npos; at = text.find("TASK", at)) {
    text.replace(at, 4, same);
  }
  const Json json = Json::parse(text);
  const Plan plan = plan_from_json(JsonReader(json, {"by hand", ""}));
  const Result result = simulate(plan, round_node(2), {});
  CHECK(spans(result.programs[0]) ==
        Spans{{0, 10}, {10, 15}, {10, 20}, {20, 25}, {45, 50}, {50, 70}, {75, 80}, {80, 100}});
  CHECK(spans(result.programs[1]) ==
        Spans{{10, 15}, {15, 25}, {25, 45}, {45, 50}, {20, 25}, {45, 55}, {55, 75}, {75, 80}});
  CHECK(result.step_time == SimTime(100));
}

// Two stages as above, by hand: the first computes 10, sends 5 and receives at 35, the second
// receives until 15, computes 20, sends 5 until 40. The first computes 8 more, until 48.
//   first    forward 10, pipeline 5, bubble 20 (15 to 35), pipeline 5, backward 8
//   second   bubble 10, pipeline 5, forward 20, pipeline 5, bubble 8 (until the step's end)
TEST_CASE("the time of every stage is told by cause") {
  PlanBuilder b = two_programs({0}, {1});
  const TaskId forward = b.kernel(10);
  b.transfer(/*sends=*/true, 1, 5, {forward});
  const TaskId back = b.transfer(/*sends=*/false, 1, 5, {}, /*stream=*/2);
  b.plan.programs[0].tasks[static_cast<std::size_t>(b.kernel(8, {back}))].phase = Phase::backward;
  b.current = 1;
  const TaskId there = b.transfer(/*sends=*/false, 0, 5);
  b.transfer(/*sends=*/true, 0, 5, {b.kernel(20, {there})}, /*stream=*/2);
  const Result result = on_node(b);
  CHECK(result.step_time == SimTime(48));
  const auto parts = [&](std::size_t program) {
    std::vector<std::int64_t> times;
    for (const TimePart part :
         {TimePart::forward, TimePart::backward, TimePart::pipeline, TimePart::bubble}) {
      times.push_back(result.programs[program].parts.at(static_cast<std::size_t>(part)).count());
    }
    return times;
  };
  CHECK(parts(0) == std::vector<std::int64_t>{10, 8, 10, 20});
  CHECK(parts(1) == std::vector<std::int64_t>{20, 0, 10, 18});
}

// 10 bytes on channel 1 until 10, then 30 on channel 0: in another order than they are sent.
TEST_CASE("messages meet by channel, not by order alone") {
  const auto plan = [](std::int32_t channel) {
    PlanBuilder b = two_programs({0}, {1});
    b.transfer(/*sends=*/true, 1, 30, {}, /*stream=*/1);
    b.transfer(/*sends=*/true, 1, 10, {}, /*stream=*/2);
    b.plan.transfers.back().channel = channel;
    b.current = 1;
    b.transfer(/*sends=*/false, 0, 10);
    b.plan.transfers.back().channel = channel;
    b.transfer(/*sends=*/false, 0, 30);
    return b;
  };
  const Result result = on_node(plan(1));
  CHECK(spans(result.programs[0]) == Spans{{10, 40}, {0, 10}});
  CHECK(spans(result.programs[1]) == Spans{{0, 10}, {10, 40}});
  CHECK_THROWS_WITH(on_node(plan(0)), "plan: message 0 from first to second has two sizes");
}

// 60 bytes leave device 0, or come to it, at one byte per picosecond: 30 of each of the two others.
TEST_CASE("messages between programs of different size") {
  const auto plan = [](std::int64_t one, std::int64_t each, bool there,
                       std::vector<std::int64_t> many = {1, 2}) {
    PlanBuilder b = two_programs({0}, many);
    b.transfer(/*sends=*/there, 1, one);
    b.current = 1;
    b.transfer(/*sends=*/!there, 0, each);
    return b;
  };
  for (const bool there : {true, false}) {
    for (const CollectiveModel model : {collective_models::simulated, collective_models::flows}) {
      CAPTURE(there, name_of(model));
      const Result result = on_node(plan(60, 30, there), model);
      CHECK(spans(result.programs[0]) == Spans{{0, 60}});
      CHECK(spans(result.programs[1]) == Spans{{0, 60}});
      CHECK(on_node(plan(60, 15, there, {1, 2, 3, 4}), model).step_time == SimTime(60));
    }
  }
  CHECK_THROWS_WITH(on_node(plan(60, 60, true)),
                    "plan: message 0 from first to second has two sizes");
  CHECK_THROWS_WITH(on_node(plan(60, 30, true), collective_models::xla_sol),
                    "program first: what \"xla-sol\" makes of messages from 1 device to 2 is not "
                    "known");
  PlanBuilder b = two_programs({0, 1}, {2, 3, 4});
  b.transfer(/*sends=*/true, 1, 30);
  b.current = 1;
  b.transfer(/*sends=*/false, 0, 20);
  CHECK_THROWS_WITH(on_node(b),
                    "program first: messages from 2 devices to 3 of second are not simulated: "
                    "neither is a multiple of the other");
}

// The first is ready at 70, the second at 20: both run it from 70 to 80, once more from 80 to 90.
TEST_CASE("programs run a collective together") {
  PlanBuilder b = two_programs({0}, {1});
  const TaskId late = b.kernel(70);
  b.gather(10, {late});
  run_collective(b);
  b.current = 1;
  const TaskId early = b.kernel(20);
  run_collective(b, {early});
  run_collective(b);
  b.kernel(5, {1});
  const Result result = on_node(b);
  CHECK(spans(result.programs[0]) == Spans{{0, 70}, {70, 80}, {80, 90}});
  CHECK(spans(result.programs[1]) == Spans{{0, 20}, {70, 80}, {80, 90}, {80, 85}});
  REQUIRE(result.communication.size() == 1);
  CHECK(result.communication[0].count == 2);
  CHECK(result.communication[0].payload == Bytes(40));
  CHECK(result.link_balance == 1);
}

// Of three programs groups join two: the third is alone, and starts at once.
TEST_CASE("groups say which programs run a collective together") {
  PlanBuilder b = two_programs({0}, {1, 2});
  b.plan.programs[1].devices = {1};
  b.add_program("third", {2});
  const TaskId late = b.kernel(70);
  b.gather(10, {late});
  b.plan.collectives[0].axes.clear();
  b.plan.collectives[0].groups = {{0, 1}, {2}};
  for (const std::size_t other : {std::size_t{1}, std::size_t{2}}) {
    b.current = other;
    run_collective(b);
  }
  const Result result = on_node(b);
  CHECK(result.programs[1].tasks[0].start == SimTime(70));
  CHECK(result.programs[2].tasks[0].start == SimTime(0));
}

// Each also has a collective of its own on another stream: 20 bytes on links that both use, from 0
// to 20. The joint one, from 10 on, has half of them until 30: 10 of 20 done for both.
TEST_CASE("what programs run together shares the links of each") {
  PlanBuilder b({{"program", 2}, {"x", 2}});
  b.plan.programs[0].devices = {0, 1};
  b.add_program("second", {2, 3});
  const TaskId wait = b.kernel(10);
  b.gather(10, {wait}, /*stream=*/1, /*axis=*/0);
  b.gather(20, {}, /*stream=*/2, /*axis=*/1);
  b.current = 1;
  run_collective(b);
  const Result result = on_node(b);
  // Alone from 0 to 10; then half each until the joint one is through at 30, as is the other.
  CHECK(spans(result.programs[0]) == Spans{{0, 10}, {10, 30}, {0, 30}});
  CHECK(spans(result.programs[1]) == Spans{{10, 30}});
}

TEST_CASE("programs that do not agree on what they run together are a bug") {
  PlanBuilder b = two_programs({0}, {1});
  b.gather(10);
  CHECK_THROWS_WITH(on_node(b),
                    "plan: all-gather of several programs: first runs it 1 times, second 0");
}

}  // namespace
}  // namespace shardsim::programs_test
