// Programs of any buffers on two streams: the peak is what a look at every moment finds.
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "fake_memory.hpp"
#include "sim/step/memory.hpp"
#include "validate/step/memory_step.hpp"

namespace shardsim {
namespace {

struct RandomStep {
  Plan plan;
  std::vector<TaskTimes> times;
};

RandomStep random_step() {
  RandomStep step;
  step.plan.names = {"name"};
  Program& program = step.plan.programs.emplace_back();
  program.streams = {"compute", "other"};
  const int tasks = *rc::gen::inRange(1, 8);
  for (int i = 0; i < tasks; ++i) {
    Task task;
    task.stream = static_cast<std::uint8_t>(*rc::gen::inRange(0, 2));
    std::vector<TaskId> after;
    if (i > 0 && *rc::gen::arbitrary<bool>()) after = {*rc::gen::inRange(0, i)};
    (void)program.add_task(task, after);
    step.times.push_back({SimTime(i), SimTime(i + 1)});
  }
  const int buffers = *rc::gen::inRange(0, 12);
  for (int i = 0; i < buffers; ++i) {
    Buffer buffer;
    buffer.category = static_cast<BufferCategory>(*rc::gen::inRange(0, buffer_categories));
    buffer.bytes = Bytes(*rc::gen::inRange<std::int64_t>(0, 20));
    buffer.allocated_by = *rc::gen::inRange(before_the_step, tasks);
    const auto freed_after = *rc::gen::container<std::vector<TaskId>>(
        *rc::gen::inRange<std::size_t>(0, 3), rc::gen::inRange(0, tasks));
    program.add_buffer(buffer, freed_after);
  }
  return step;
}

Bytes alive_at(std::int64_t moment, const Program& program) {
  const auto lifetimes = lifetimes_of(program);
  Bytes alive{0};
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].begin <= moment && moment < lifetimes[i].end) {
      alive += program.buffers[i].bytes;
    }
  }
  return alive;
}

}  // namespace

TEST_CASE("a replay finds the peak that a look at every moment does, and the simulator's") {
  const bool passed = rc::check([] {
    const RandomStep step = random_step();
    Bytes peak{0};
    for (std::size_t t = 0; t < step.times.size(); ++t) {
      peak = std::max(peak, alive_at(static_cast<std::int64_t>(t), step.plan.programs[0]));
    }
    testing::FakeMemory memory(Bytes(1));
    const MeasuredMemory measured = measure_memory(step.plan.programs[0], memory);
    RC_ASSERT(measured.peak == peak);
    ProgramResult simulated;
    simulated.tasks = step.times;
    replay_memory(step.plan, step.plan.programs[0], Bytes(0), /*keep_curve=*/false, simulated);
    RC_ASSERT(measured.peak == simulated.peak);
    RC_ASSERT(measured.by_category == simulated.peak_by_category);
  });
  CHECK(passed);
}

}  // namespace shardsim
