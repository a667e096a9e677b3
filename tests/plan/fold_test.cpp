#include "plan/fold.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "arbitrary_plan.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
namespace {

TEST_CASE("layers that do the same are one section") {
  // Forward: 5 layers of 2 tasks. Loss: task 10. Backward: 5 layers of 3 tasks from task 11; the
  // first of them waits for the loss, the others for the layer before, so it stands apart up to
  // its reduce-scatter and the repetition begins with the latter.
  const Plan plan = layered_plan(5);
  const auto sections = fold(plan.programs[0]);
  REQUIRE(sections.size() == 4);
  CHECK(sections[0] == Section{0, 2, 5});
  CHECK(sections[1] == Section{10, 3, 1});  // loss, gather 4, matmul 4
  CHECK(sections[2] == Section{13, 3, 4});  // reduce 4, gather 3, matmul 3; ... of 4 layers
  CHECK(sections[3] == Section{25, 1, 1});  // reduce 0
  const auto stands_for = representatives(plan.programs[0], sections);
  CHECK(stands_for[9] == 1);
  CHECK(stands_for[10] == 10);
  CHECK(stands_for[24] == 15);
}

TEST_CASE("a layer with different work is not folded in") {
  Plan plan = layered_plan(5);
  plan.kernels.push_back(plan.kernels[0]);
  plan.programs[0].tasks[5].work = 1;  // the matmul of layer 2
  const auto sections = fold(plan.programs[0]);
  CHECK(sections[0] == Section{0, 2, 2});
  CHECK(sections[1].repeats == 1);
}

// Microbatches of two kernels each, the second of which also waits for its predecessor's.
Plan accumulating_plan(std::int32_t microbatches, std::int32_t step = 1) {
  Plan plan;
  plan.names = {"layers.{}.proj", "accumulation"};
  plan.kernels.resize(1);
  Program program;
  program.streams = {"compute"};
  TaskId sum = before_the_step;
  for (std::int32_t i = 0; i < microbatches; ++i) {
    Task task;
    task.microbatch = i * step;
    const TaskId product = program.add_task(task, {});
    task.name = 1;
    const auto after = i == 0 ? std::vector<TaskId>{product} : std::vector<TaskId>{sum, product};
    sum = program.add_task(task, after);
  }
  plan.programs = {program};
  return plan;
}

TEST_CASE("microbatches that do the same are one section") {
  // The first has no sum to wait for and stands apart: 1 + 3 of 4 microbatches, tasks 2 to 7.
  const Plan plan = accumulating_plan(4);
  CHECK(fold(plan.programs[0]) == std::vector<Section>{{0, 2, 1}, {2, 2, 3}});
  CHECK(representatives(plan.programs[0], fold(plan.programs[0])) ==
        std::vector<TaskId>{0, 1, 2, 3, 2, 3, 2, 3});
  CHECK(plan_to_text(plan).find("x3: #2 to #7, microbatch 1 to 3\n") != std::string::npos);
}

TEST_CASE("microbatches that are not one after the other are no repetition") {
  // 0, 2, 4, 6: "microbatch 2 to 6" would name those between, which do something else.
  CHECK(fold(accumulating_plan(4, 2).programs[0]) == std::vector<Section>{{0, 8, 1}});
  CHECK(fold(accumulating_plan(4, 0).programs[0]) == std::vector<Section>{{0, 8, 1}});
}

TEST_CASE("a stretch of which a part stays behind is no repetition") {
  // The sums are all of microbatch 0; then all of layer 3 while the products are of 0, 1, 2, 3.
  Plan plan = accumulating_plan(4);
  for (Task& task : plan.programs[0].tasks) task.microbatch = task.name == 0 ? task.microbatch : 0;
  CHECK(fold(plan.programs[0]) == std::vector<Section>{{0, 8, 1}});
  for (Task& task : plan.programs[0].tasks) {
    task.layer = task.name == 0 ? task.microbatch : 3;
    task.microbatch = 0;
  }
  CHECK(fold(plan.programs[0]) == std::vector<Section>{{0, 8, 1}});
}

TEST_CASE("what moves on in layer and microbatch at once is no repetition") {
  Plan plan = accumulating_plan(4);
  for (Task& task : plan.programs[0].tasks) task.layer = task.microbatch;
  CHECK(fold(plan.programs[0]) == std::vector<Section>{{0, 8, 1}});
}

// A stretch of tasks with names of their own, repeated: one section, as long and as often as it is.
TEST_CASE("a repeated stretch is found whole") {
  CHECK(rc::check([] {
    const auto length = *rc::gen::inRange<TaskId>(1, 6);
    const auto repeats = *rc::gen::inRange<std::int32_t>(2, 7);
    const auto layer_step = *rc::gen::element<std::int32_t>(-1, 0, 1);
    Program program;
    program.streams = {"compute"};
    for (std::int32_t repeat = 0; repeat < repeats; ++repeat) {
      for (TaskId i = 0; i < length; ++i) {
        Task task;
        task.name = i;
        task.layer = layer_step < 0 ? repeats - 1 - repeat : layer_step == 0 ? 3 : repeat;
        task.microbatch = layer_step == 0 ? repeat : 3;
        const TaskId first = repeat * length;
        (void)program.add_task(task, i == 0 ? std::vector<TaskId>{} : std::vector{first + i - 1});
      }
    }
    RC_ASSERT(fold(program) == (std::vector<Section>{{0, length, repeats}}));
  }));
}

TEST_CASE("sections cover all tasks in order, repetitions do what they stand for") {
  CHECK(rc::check([] {
    const Plan plan = arbitrary_plan();
    for (const Program& program : plan.programs) {
      const auto sections = fold(program);
      TaskId next = 0;
      for (const Section& section : sections) {
        RC_ASSERT(section.first == next);
        RC_ASSERT(section.length >= 1 && section.repeats >= 1);
        next += static_cast<TaskId>(section.length * section.repeats);
      }
      RC_ASSERT(next == static_cast<TaskId>(program.tasks.size()));
      const auto stands_for = representatives(program, sections);
      for (std::size_t i = 0; i < program.tasks.size(); ++i) {
        const Task& task = program.tasks[i];
        const Task& first = program.tasks[static_cast<std::size_t>(stands_for[i])];
        RC_ASSERT(task.kind == first.kind && task.work == first.work && task.name == first.name);
      }
    }
  }));
}

}  // namespace
}  // namespace shardsim
