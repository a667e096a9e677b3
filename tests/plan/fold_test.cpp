#include "plan/fold.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "arbitrary_plan.hpp"

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
