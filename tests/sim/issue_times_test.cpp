// When hosts issue what devices do. Machines of one byte and one flop per picosecond
// (machines.hpp), a launch of 3 ps, so that times are derived beside the cases.
#include "sim/step/issue_times.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim::issue_times_test {
namespace {

using testing::PlanBuilder;
using testing::round_node;

// "first" on one device, "second" on another.
PlanBuilder two_stages() {
  PlanBuilder b({{"x", 2}});
  b.plan.programs[0].name = "first";
  b.plan.programs[0].devices = {0};
  b.add_program("second", {1});
  return b;
}

Machine with_slow_host() {
  Machine machine = round_node(1);
  machine.profile.device.host_launch["eager"].value = Seconds(3e-12);
  return machine;
}

IssueTimes issue_times_of(const PlanBuilder& b) {
  return issue_times(b.plan, with_slow_host().profile.device);
}

std::vector<SimTime> picoseconds(const std::vector<std::int64_t>& counts) {
  std::vector<SimTime> times;
  for (const std::int64_t count : counts) times.emplace_back(count);
  return times;
}

TaskId exchange(PlanBuilder& b, const std::vector<TaskId>& after = {}) {
  const TaskId task = b.gather(0, after);
  b.plan.collectives.back().kind = CollectiveKind::all_to_all;
  return task;
}

// Three kernels of 2 ps, issued at 3, 6 and 9: the host is what they wait for. Of 5 ps they end at
// 8, 13 and 18: only the first does. A kernel of two launches takes the host twice as long.
TEST_CASE("a task starts once the host has issued it") {
  Machine machine = round_node(1);
  const auto step = [&](std::int64_t picoseconds, std::int32_t launches) {
    PlanBuilder b({{"x", 1}});
    b.plan.issued_by = "eager";
    for (int i = 0; i < 3; ++i) (void)b.kernel(picoseconds);
    for (Kernel& kernel : b.plan.kernels) kernel.launches = launches;
    return simulate(b.plan, machine, {}).step_time;
  };
  CHECK(step(2, 1) == SimTime(6));
  machine.profile.device.host_launch["eager"].value = Seconds(3e-12);
  CHECK(step(2, 1) == SimTime(11));
  CHECK(step(5, 1) == SimTime(18));
  CHECK(step(2, 2) == SimTime(20));
  // One call of Transformer Engine issues all kernels of several experts' rows.
  PlanBuilder casts({{"x", 1}});
  casts.plan.issued_by = "eager";
  (void)casts.kernel(1);
  casts.plan.kernels.back().launches = 8;
  CHECK(issue_times(casts.plan, machine.profile.device).times.front() == SimTime(24));
  casts.plan.kernels.back().kernel_class = KernelClass::memory;
  casts.plan.kernels.back().implementation = "transformer-engine";
  CHECK(issue_times(casts.plan, machine.profile.device).times.front() == SimTime(3));
  PlanBuilder short_tasks({{"x", 1}});
  short_tasks.plan.issued_by = "eager";
  for (int i = 0; i < 20; ++i) (void)short_tasks.kernel(1);
  const std::vector<std::string> notes = simulate(short_tasks.plan, machine, {}).notes;
  CHECK(std::count(notes.begin(), notes.end(),
                   "the host bounds the step: issuing its tasks takes 0.060 ns, 0.003 ns a launch "
                   "(eager)") == 1);
  machine.profile.device.host_launch.clear();
  machine.profile.device.host_launch["compiled"].value = Seconds(3e-12);
  CHECK(step(2, 1) == SimTime(6));
}

// Two layers of three kernels, issued at 3 and 6 with all that follows of each: 3, 5, 7 and then 9,
// 11, 13.
TEST_CASE("a layer may be one launch") {
  Machine machine = round_node(1);
  machine.profile.device.host_launch["eager"].value = Seconds(3e-12);
  PlanBuilder b({{"x", 1}});
  b.plan.issued_by = "eager";
  b.plan.layers_are_graphs = true;
  for (int i = 0; i < 6; ++i) {
    b.plan.programs[0].tasks[static_cast<std::size_t>(b.kernel(2))].layer = i / 3;
  }
  CHECK(simulate(b.plan, machine, {}).step_time == SimTime(3 + 6 * 2));
}

// A kernel and a send of one program, issued at 3 and 6 ps, a receive of another, issued at 3.
PlanBuilder message_behind_a_kernel() {
  PlanBuilder b = two_stages();
  b.plan.issued_by = "eager";
  b.current = 0;
  const TaskId computed = b.kernel(1);
  (void)b.transfer(true, 1, 5, {computed});
  b.current = 1;
  (void)b.transfer(false, 0, 5);
  return b;
}

// Both ends have been issued at 6.
TEST_CASE("a message waits for the later of its hosts") {
  Machine machine = round_node(2);
  machine.profile.device.host_launch["eager"].value = Seconds(3e-12);
  CHECK(simulate(message_behind_a_kernel().plan, machine, {}).step_time == SimTime(6 + 5));
}

// A kernel behind the receive is issued at 6, or 3 ps behind the receive's end at 6 + 5.
TEST_CASE("a host may wait for what is received before it goes on") {
  Machine machine = round_node(2);
  machine.profile.device.host_launch["eager"].value = Seconds(3e-12);
  PlanBuilder b = message_behind_a_kernel();
  (void)b.kernel(1);
  CHECK(simulate(b.plan, machine, {}).step_time == SimTime(6 + 5));
  b.plan.awaits_messages = true;
  CHECK(simulate(b.plan, machine, {}).step_time == SimTime(6 + 5 + 3 + 1));
}

// A layer of experts, and one without. Ends of the first are graphs, and the second is.
TEST_CASE("what is beside a layer's experts may be graphs") {
  PlanBuilder b({{"x", 1}});
  b.plan.issued_by = "eager";
  for (const bool is_exchange : {false, false, true, false, false, true, false, false}) {
    static_cast<void>(is_exchange ? exchange(b) : b.kernel(1));
    b.plan.programs[0].tasks.back().layer = 0;
  }
  for (int i = 0; i < 2; ++i) {
    static_cast<void>(b.kernel(1));
    b.plan.programs[0].tasks.back().layer = 1;
  }
  CHECK(issue_times_of(b).times == picoseconds({3, 6, 9, 12, 15, 18, 21, 24, 27, 30}));
  b.plan.parts_are_graphs = true;
  CHECK(issue_times_of(b).times == picoseconds({3, 3, 6, 9, 12, 15, 18, 18, 21, 21}));
  b.plan.parts_are_graphs = false;
  b.plan.layers_are_graphs = true;
  CHECK(issue_times_of(b).times == picoseconds({3, 3, 3, 3, 3, 3, 3, 3, 6, 6}));
}

// Kernels that send rows tell how many before they send them: the host waits for what is before
// them. For counts that are told by a collective of their own it waits until that has ended.
TEST_CASE("a host waits for how many rows are exchanged") {
  PlanBuilder b({{"x", 1}});
  b.plan.issued_by = "eager";
  const TaskId routed = b.kernel(1);
  const TaskId exchanged = exchange(b, {routed});
  static_cast<void>(b.kernel(1, {exchanged}));
  CHECK(issue_times_of(b).behind.empty());
  Collective& collective = b.plan.collectives.front();
  collective.awaited = true;
  CHECK(issue_times_of(b).times == picoseconds({3, 6, 3}));
  CHECK(issue_times_of(b).behind == std::vector<std::int32_t>{-1, -1, 1});
  collective.visits = RowVisits{.places = 2, .visited = 1, .multiprocessors = 1, .row = Bytes(1)};
  CHECK(issue_times_of(b).times == picoseconds({3, 3, 6}));
  CHECK(issue_times_of(b).behind == std::vector<std::int32_t>{-1, 0, 0});
}

}  // namespace
}  // namespace shardsim::issue_times_test
