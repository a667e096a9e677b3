// Buffers that come and go as in a simulated step: by hand, and the law that memory in granules of
// a byte takes what the simulator says.
#include "validate/step/memory_step.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "fake_memory.hpp"
#include "validate/step/serialize_streams.hpp"

namespace shardsim {
namespace {

using testing::FakeMemory;

Bytes of(const MeasuredMemory& measured, BufferCategory category) {
  return measured.by_category[static_cast<std::size_t>(category)];
}

Program program_of_tasks(int tasks) {
  Program program;
  program.name = "all";
  program.streams = {"compute"};
  for (int i = 0; i < tasks; ++i) (void)program.add_task({}, {});
  return program;
}

void add(Program& program, std::int64_t bytes, BufferCategory category, TaskId allocated_by,
         const std::vector<TaskId>& freed_after) {
  Buffer buffer;
  buffer.category = category;
  buffer.bytes = Bytes(bytes);
  buffer.allocated_by = allocated_by;
  program.add_buffer(buffer, freed_after);
}

// The example of sim/step/memory.hpp: kernels A, B and C.
Program program_abc() {
  Program program = program_of_tasks(3);
  add(program, 10, BufferCategory::parameters, before_the_step, {});
  add(program, 4, BufferCategory::activations, 0, {1});
  add(program, 3, BufferCategory::activations, 1, {2});
  add(program, 6, BufferCategory::temporaries, 2, {2});
  return program;
}

struct Case {
  const char* file;
  const char* name;  // of the variant; empty: the only one
};

Prediction predicted(const Case& which) {
  const std::string file = std::string(SHARDSIM_SOURCE_DIR) + "/examples/" + which.file;
  for (const Experiment& experiment : read_experiments(load_json(file), file)) {
    if (std::string(which.name).empty() || experiment.name == which.name) {
      return predict(experiment, {});
    }
  }
  FAIL("no experiment " << which.name);
  throw std::logic_error(which.name);
}

void check_against_simulator(const Plan& plan, const Result& result) {
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const ProgramResult& simulated = result.programs[p];
    REQUIRE(simulated.peak > Bytes(0));
    FakeMemory exact(Bytes(1));
    const MeasuredMemory measured = measure_memory(plan.programs[p], exact);
    CHECK(measured.peak == simulated.peak);
    CHECK(measured.by_category == simulated.peak_by_category);
    CHECK(measured.reserved >= measured.peak);  // buffers that go later in the same moment
    for (const std::int64_t granule : {256, 4096, 2 << 20}) {
      CAPTURE(granule);
      FakeMemory memory{Bytes(granule)};
      const MeasuredMemory rounded = measure_memory(plan.programs[p], memory);
      // Each buffer that is there is rounded up by less than a granule.
      CHECK(rounded.peak >= simulated.peak);
      CHECK(rounded.peak <= simulated.peak + Bytes(memory.most_buffers * (granule - 1)));
      Bytes sum{0};
      for (const Bytes category : rounded.by_category) sum += category;
      CHECK(sum == rounded.peak);  // no buffer shares a granule
    }
  }
}

}  // namespace

// 19 B in C: 10 + 3 + 6, as A's 4 B are gone. In granules of 4: 12 and 4 in A, 4 more in B, in C
// they are 12 + 4 + 8.
TEST_CASE("buffers by hand") {
  const Program program = program_abc();
  FakeMemory exact(Bytes(1));
  const MeasuredMemory measured = measure_memory(program, exact);
  CHECK(measured.peak == Bytes(19));
  CHECK(of(measured, BufferCategory::parameters) == Bytes(10));
  CHECK(of(measured, BufferCategory::activations) == Bytes(3));
  CHECK(of(measured, BufferCategory::temporaries) == Bytes(6));
  CHECK(measured.reserved == Bytes(19));
  CHECK(exact.in_use() == Bytes(10));  // what lives beyond the step

  FakeMemory fours(Bytes(4));
  const MeasuredMemory rounded = measure_memory(program, fours);
  CHECK(rounded.peak == Bytes(24));
  CHECK(of(rounded, BufferCategory::parameters) == Bytes(12));
  CHECK(of(rounded, BufferCategory::activations) == Bytes(4));
  CHECK(of(rounded, BufferCategory::temporaries) == Bytes(8));
}

// The first goes before the second comes. The third has no bytes: it is never there.
TEST_CASE("at one moment buffers go before others come, and none comes to go") {
  Program program = program_of_tasks(2);
  add(program, 8, BufferCategory::temporaries, 0, {0});
  add(program, 8, BufferCategory::gradients, 1, {1});
  add(program, 0, BufferCategory::inputs, before_the_step, {});
  FakeMemory memory(Bytes(1));
  const MeasuredMemory measured = measure_memory(program, memory);
  CHECK(measured.peak == Bytes(8));
  CHECK(measured.reserved == Bytes(8));
  CHECK(of(measured, BufferCategory::temporaries) == Bytes(8));  // the first of equal peaks
  CHECK(of(measured, BufferCategory::gradients) == Bytes(0));
}

// Two buffers of 3 B in a page of 8: the first pays 8, the second nothing, also when the first is
// gone. In C a page of 8 is in use for the second, and 16 for the third.
TEST_CASE("what buffers share is the first one's, then nobody's") {
  class OnePage : public FakeMemory {
   public:
    OnePage() : FakeMemory(Bytes(1)) {}
    [[nodiscard]] Bytes in_use() const override {
      const Bytes taken = FakeMemory::in_use();
      return Bytes(8 * ceil_div(taken.count(), 8));
    }
  };
  Program program = program_of_tasks(3);
  add(program, 3, BufferCategory::parameters, 0, {1});
  add(program, 3, BufferCategory::gradients, 1, {});
  add(program, 13, BufferCategory::activations, 2, {2});
  OnePage memory;
  const MeasuredMemory measured = measure_memory(program, memory);
  CHECK(measured.peak == Bytes(16));
  CHECK(of(measured, BufferCategory::parameters) == Bytes(0));
  CHECK(of(measured, BufferCategory::gradients) == Bytes(0));
  CHECK(of(measured, BufferCategory::activations) == Bytes(8));
}

TEST_CASE("memory that is short is an error") {
  FakeMemory memory(Bytes(1), Bytes(18));
  CHECK_THROWS_AS(measure_memory(program_abc(), memory), CannotRunError);
}

TEST_CASE(
    "in granules of a byte a step takes what the simulator says, in others at most one more") {
  const Case which =
      GENERATE(Case{"validate-tiny-llama.json", "alone"}, Case{"validate-tiny-llama.json", "fsdp"},
               Case{"validate-tiny-llama.json", "tp"}, Case{"llama-3.1-8b-8xh100.json", "fsdp+tp"},
               Case{"vit-b16-tpu-v5e.json", ""}, Case{"fsdp-tutorial.json", ""});
  CAPTURE(which.file, which.name);
  const Prediction prediction = predicted(which);
  check_against_simulator(prediction.step.plan, prediction.result);
  const Plan serial = serialize_streams(prediction.step.plan, prediction.result);
  check_against_simulator(
      serial, simulate(serial, prediction.machine, simulation_options(prediction.experiment, {})));
}

}  // namespace shardsim
