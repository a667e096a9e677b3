// Laws that hold for every plan.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {
namespace {

using testing::PlanBuilder;

void holds(bool passed) { CHECK(passed); }

struct Shape {
  bool messages = false;   // two programs that send to each other; else one
  bool contention = true;  // collectives on two streams
};

std::vector<TaskId> some_earlier(const Program& program) {
  std::vector<TaskId> after;
  const auto count = static_cast<TaskId>(program.tasks.size());
  for (int i = 0; count > 0 && i < *rc::gen::inRange(0, 3); ++i) {
    after.push_back(*rc::gen::inRange<TaskId>(0, count));
  }
  return after;
}

PlanBuilder arbitrary(const Shape& shape) {
  PlanBuilder b({{"stage", shape.messages ? 2 : 1}, {"x", 2}});
  if (shape.messages) {
    b.plan.programs[0].devices = {0, 1};
    b.add_program("second", {2, 3});
  }
  const int tasks = *rc::gen::inRange(1, 40);
  for (int i = 0; i < tasks; ++i) {
    b.current = shape.messages ? static_cast<std::size_t>(*rc::gen::inRange(0, 2)) : 0;
    const auto after = some_earlier(b.plan.programs[b.current]);
    const std::int64_t duration = *rc::gen::inRange(0, 1000);
    switch (*rc::gen::inRange(0, shape.messages ? 3 : 2)) {
      case 0:
        b.kernel(duration, after);
        break;
      case 1:
        b.gather(duration, after, shape.contention ? *rc::gen::inRange(1, 3) : 1, /*axis=*/1);
        break;
      default: {  // both ends issued at once: no deadlock is possible
        const int from = static_cast<int>(b.current);
        b.transfer(/*sends=*/true, 1 - from, duration, after);
        b.current = static_cast<std::size_t>(1 - from);
        b.transfer(/*sends=*/false, from, duration, some_earlier(b.plan.programs[b.current]));
      }
    }
    const Program& program = b.plan.programs[b.current];
    const TaskId last = static_cast<TaskId>(program.tasks.size()) - 1;
    b.buffer("buffer", duration, *rc::gen::inRange<TaskId>(-1, last + 1), {last});
  }
  return b;
}

Machine machine_of(const Plan& plan) {
  Machine machine = testing::cluster(plan.mesh.devices(), 2, testing::link(1e12, 7e-12),
                                     testing::link(0.3e12, 20e-12));
  machine.profile.collective_launch.value = Seconds(11e-12);
  return machine;
}

void time_adds_up(const Result& result) {
  SimTime exposed{0};
  for (const ProgramResult& program : result.programs) {
    RC_ASSERT(program.compute_time + program.contention_time + program.exposed_time +
                  program.idle_time ==
              result.step_time);
    RC_ASSERT(program.exposed_time <= program.communication_time);
    exposed += program.exposed_time;
  }
  for (const CommunicationRow& row : result.communication) {
    RC_ASSERT(row.exposed <= row.time);
    exposed -= row.exposed;
  }
  RC_ASSERT(exposed == SimTime(0));
}

void execution_model_holds(const Plan& plan, const Result& result) {
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const Program& program = plan.programs[p];
    std::vector<SimTime> stream_free(program.streams.size(), SimTime(0));
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      const Task& task = program.tasks[i];
      const TaskTimes& times = result.programs[p].tasks[i];
      SimTime earliest = stream_free[task.stream];
      for (TaskId before : program.after(task)) {
        earliest =
            std::max(earliest, result.programs[p].tasks[static_cast<std::size_t>(before)].end);
      }
      RC_ASSERT(times.start >= earliest);
      if (task.kind != TaskKind::transfer) RC_ASSERT(times.start == earliest);
      RC_ASSERT(times.end >= times.start);
      RC_ASSERT(times.end <= result.step_time);
      stream_free[task.stream] = times.end;
    }
  }
}

bool same(const Result& a, const Result& b) {
  for (std::size_t p = 0; p < a.programs.size(); ++p) {
    for (std::size_t i = 0; i < a.programs[p].tasks.size(); ++i) {
      if (a.programs[p].tasks[i].start != b.programs[p].tasks[i].start) return false;
      if (a.programs[p].tasks[i].end != b.programs[p].tasks[i].end) return false;
    }
    if (a.programs[p].peak != b.programs[p].peak) return false;
  }
  return a.step_time == b.step_time;
}

TEST_CASE(
    "every moment is compute, contention, exposed or idle, and the rows share the exposed time") {
  holds(rc::check("time adds up", [] {
    const Plan plan = arbitrary({/*messages=*/*rc::gen::arbitrary<bool>()}).plan;
    const Result result = simulate(plan, machine_of(plan), {});
    time_adds_up(result);
    execution_model_holds(plan, result);
  }));
}

TEST_CASE("the same plan gives the same times") {
  holds(rc::check("deterministic", [] {
    const Plan plan = arbitrary({/*messages=*/true}).plan;
    RC_ASSERT(same(simulate(plan, machine_of(plan), {}), simulate(plan, machine_of(plan), {})));
  }));
}

// Without contention start and end are maxima and sums of earlier ones: monotone. (With contention
// this is false: delaying one collective can speed another up that more depends on.)
TEST_CASE("one more dependency never shortens an uncontended step") {
  holds(rc::check("monotone", [] {
    Plan plan = arbitrary({/*messages=*/false, /*contention=*/false}).plan;
    const SimTime before = simulate(plan, machine_of(plan), {}).step_time;
    Program& program = plan.programs[0];
    const auto count = static_cast<TaskId>(program.tasks.size());
    RC_PRE(count > 1);
    const TaskId later = *rc::gen::inRange<TaskId>(1, count);
    const TaskId earlier = *rc::gen::inRange<TaskId>(0, later);
    Program changed = program;
    changed.tasks.clear();
    changed.dependencies.clear();
    for (TaskId i = 0; i < count; ++i) {
      const Task& task = program.tasks[static_cast<std::size_t>(i)];
      const auto known = program.after(task);
      std::vector<TaskId> after(known.begin(), known.end());
      if (i == later) after.push_back(earlier);
      (void)changed.add_task(task, after);
    }
    program = changed;
    RC_ASSERT(simulate(plan, machine_of(plan), {}).step_time >= before);
  }));
}

// The smallest example of docs/laws.md. Alone the gather that is waited for ends at 21; the other
// one takes half of the link from it from 20 on, or from 10 on.
TEST_CASE("with contention a shorter kernel can make the step longer") {
  const auto step = [](std::int64_t second_kernel) {
    PlanBuilder b;
    const TaskId first = b.kernel(5);
    const TaskId awaited = b.gather(16, {first}, /*stream=*/2);
    const TaskId second = b.kernel(second_kernel);
    b.gather(100, {second}, /*stream=*/1);
    b.kernel(110, {awaited});
    return simulate(b.plan, testing::round_node(2), {}).step_time;
  };
  CHECK(step(15) == SimTime(22 + 110));
  CHECK(step(5) == SimTime(32 + 110));
}

// Shared links are never idle and never faster: n equal flows of d that start together all end at
// n d, and whatever else happens a flow never ends before it would alone.
TEST_CASE("sharing keeps links busy and never speeds a flow up") {
  holds(rc::check("work conserving", [] {
    const std::int64_t first = *rc::gen::inRange(1, 100'000);
    const std::int64_t second = *rc::gen::inRange(1, 100'000);
    const std::int64_t delay = *rc::gen::inRange(0, 100'000);
    PlanBuilder b;
    const TaskId wait = b.kernel(delay);
    b.gather(first, {}, 1);
    b.gather(second, {wait}, 2);
    const auto tasks = simulate(b.plan, testing::round_node(2), {}).programs[0].tasks;
    const std::int64_t last = std::max(tasks[1].end, tasks[2].end).count();
    RC_ASSERT(tasks[1].end >= SimTime(first));
    RC_ASSERT(tasks[2].end >= SimTime(delay + second));
    // Work is done when all bytes are through; a share that is recomputed rounds up by less than
    // 1 ps at full speed, 2 ps at half.
    const std::int64_t busy =
        delay >= first ? delay + second : std::max(first + second, delay + second);
    RC_ASSERT(last >= busy);
    RC_ASSERT(last <= busy + 2);
  }));
}

}  // namespace
}  // namespace shardsim
