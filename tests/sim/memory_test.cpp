#include <catch2/catch.hpp>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {
namespace {

using testing::PlanBuilder;

std::vector<std::pair<std::int64_t, std::int64_t>> curve(const ProgramResult& program) {
  std::vector<std::pair<std::int64_t, std::int64_t>> points;
  for (const MemorySample& sample : program.memory_curve) {
    Bytes total{0};
    for (Bytes bytes : sample.by_category) total += bytes;
    points.emplace_back(sample.time.count(), total.count());
  }
  return points;
}

// sim/step/memory.hpp's example.
TEST_CASE("memory over time, by hand") {
  PlanBuilder b;
  const TaskId a = b.kernel(5);
  const TaskId second = b.kernel(4);
  const TaskId third = b.kernel(3);
  b.buffer("weights", 10, before_the_step, {}, BufferCategory::parameters);
  b.buffer("h", 4, a, {second}, BufferCategory::activations);
  b.buffer("h", 3, second, {third}, BufferCategory::activations);
  b.buffer("scratch", 6, third, {third});
  const Result result = simulate(b.plan, testing::round_node(2), {/*keep_timeline=*/true});
  const ProgramResult& program = result.programs[0];
  CHECK(curve(program) ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 14}, {5, 17}, {9, 19}, {12, 10}});
  CHECK(program.peak == Bytes(19));  // 10 + 3 + 6, h's first part gone
  CHECK(program.peak_time == SimTime(9));
  CHECK(program.peak_task == "task 2");
  CHECK(program.peak_by_category[static_cast<std::size_t>(BufferCategory::temporaries)] ==
        Bytes(6));
  REQUIRE(program.peak_buffers.size() == 3);
  CHECK(program.peak_buffers[0].name == "weights");
  CHECK(program.peak_buffers[1].name == "scratch");
  CHECK(program.peak_buffers[2].bytes == Bytes(3));
  CHECK(result.peak() == Bytes(19));
  CHECK(result.capacity == Bytes(1000));
  CHECK(result.fits());
}

TEST_CASE("at one moment frees come before allocations") {
  PlanBuilder b;
  const TaskId a = b.kernel(5);
  const TaskId second = b.kernel(5);
  b.buffer("first", 8, a, {a});
  b.buffer("second", 8, second, {second});
  CHECK(simulate(b.plan, testing::round_node(2), {}).peak() == Bytes(8));
}

TEST_CASE("a buffer dies with the last of its readers, on whatever stream") {
  PlanBuilder b;
  const TaskId gather = b.gather(10);
  const TaskId slow = b.gather(90, {gather});
  const TaskId quick = b.kernel(20, {gather});
  b.buffer("w", 8, gather, {quick, slow});
  const ProgramResult program =
      simulate(b.plan, testing::round_node(2), {/*keep_timeline=*/true}).programs[0];
  CHECK(curve(program) == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 8}, {100, 0}});
}

TEST_CASE("layers of one name are one entry at the peak; ties go by name") {
  PlanBuilder b;
  b.kernel(1);
  for (int layer = 0; layer < 3; ++layer) b.buffer("layers.{}.w", 2, before_the_step, {});
  b.buffer("b", 1, before_the_step, {});
  b.buffer("a", 1, before_the_step, {});
  const ProgramResult program = simulate(b.plan, testing::round_node(2), {}).programs[0];
  REQUIRE(program.peak_buffers.size() == 3);
  CHECK(program.peak_buffers[0].name == "layers.{}.w");
  CHECK(program.peak_buffers[0].count == 3);
  CHECK(program.peak_buffers[0].bytes == Bytes(6));
  CHECK(program.peak_buffers[1].name == "a");
  CHECK(program.memory_curve.empty());
}

}  // namespace
}  // namespace shardsim
