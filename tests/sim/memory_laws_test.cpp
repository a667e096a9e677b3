// Laws of memory: it goes by the order of a program, not by how long anything takes.
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim::memory_laws_test {
namespace {

using testing::PlanBuilder;

// Kernels and collectives on three streams, and buffers of some of them.
PlanBuilder arbitrary_step() {
  PlanBuilder b;
  const TaskId tasks = *rc::gen::inRange(1, 30);
  for (TaskId i = 0; i < tasks; ++i) {
    std::vector<TaskId> after;
    for (int d = *rc::gen::inRange(0, 3); i > 0 && d > 0; --d) {
      after.push_back(*rc::gen::inRange<TaskId>(0, i));
    }
    const std::int64_t duration = *rc::gen::inRange<std::int64_t>(1, 1000);
    const int stream = *rc::gen::inRange(0, 3);
    if (stream == 0 || *rc::gen::inRange(0, 4) == 0) {
      b.kernel(duration, after, stream);
    } else {
      b.gather(duration, after, stream);
    }
  }
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
    const TaskId allocated_by = *rc::gen::inRange<TaskId>(before_the_step, tasks);
    const TaskId first = std::max<TaskId>(allocated_by, 0);
    std::vector<TaskId> freed_after;
    for (int f = *rc::gen::inRange(0, 3); f > 0; --f) {
      freed_after.push_back(*rc::gen::inRange<TaskId>(first, tasks));
    }
    b.buffer("buffer", *rc::gen::inRange<std::int64_t>(1, 100), allocated_by, freed_after);
  }
  return b;
}

// What is there at a time of the step, by when tasks began and ended.
Bytes alive_at(SimTime time, const Program& program, const std::vector<TaskTimes>& tasks) {
  Bytes alive{0};
  for (const Buffer& buffer : program.buffers) {
    SimTime begin{0};
    if (buffer.allocated_by >= 0)
      begin = tasks[static_cast<std::size_t>(buffer.allocated_by)].start;
    SimTime end = begin;
    for (const TaskId last : program.freed_after(buffer)) {
      end = std::max(end, tasks[static_cast<std::size_t>(last)].end);
    }
    if (begin <= time && (buffer.free_count == 0 || time < end)) alive += buffer.bytes;
  }
  return alive;
}

void redo_durations(Plan& plan) {
  for (Kernel& kernel : plan.kernels) {
    kernel.flops = Flops(static_cast<double>(*rc::gen::inRange(1, 1000)));
  }
  for (Collective& collective : plan.collectives) {
    collective.payload = Bytes(2 * *rc::gen::inRange<std::int64_t>(1, 1000));
  }
}

TEST_CASE("however long tasks take, the peak is the same and no moment has more") {
  const bool holds = rc::check("memory", [] {
    Plan plan = arbitrary_step().plan;
    const Machine machine = testing::round_node(2);
    const Bytes peak = simulate(plan, machine, {}).peak();
    redo_durations(plan);
    const Result result = simulate(plan, machine, {});
    RC_ASSERT(result.peak() == peak);
    for (const TaskTimes& task : result.programs[0].tasks) {
      RC_ASSERT(alive_at(task.start, plan.programs[0], result.programs[0].tasks) <= peak);
    }
  });
  CHECK(holds);
}

}  // namespace
}  // namespace shardsim::memory_laws_test
