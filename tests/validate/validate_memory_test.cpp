// Memory of all processes of a job beside what was simulated; and when there is not enough.
#include "validate/step/validate_memory.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "fake_backend.hpp"
#include "validate/step/validate_step.hpp"

namespace shardsim {
namespace {

using testing::FakeBackend;
using testing::FakeMemory;

constexpr auto gradients = static_cast<std::size_t>(BufferCategory::gradients);

MeasuredMemory measured(std::int64_t peak, std::int64_t of_gradients) {
  MeasuredMemory memory;
  memory.peak = Bytes(peak);
  memory.reserved = Bytes(2 * peak);
  memory.by_category[gradients] = Bytes(of_gradients);
  return memory;
}

// Two stages of two devices, of which buffers of 100 and 70 B were simulated.
Plan stages() {
  Plan plan;
  plan.mesh = Mesh({{"stage", 2}, {"data", 2}});
  for (const std::int64_t first : {0, 2}) {
    Program& program = plan.programs.emplace_back();
    program.name = first == 0 ? "first" : "last";
    program.devices = {first, first + 1};
  }
  return plan;
}

Result simulated_stages() {
  Result result;
  result.programs.resize(2);
  result.programs[0].peak = Bytes(100);
  result.programs[0].peak_by_category[gradients] = Bytes(60);
  result.programs[1].peak = Bytes(70);
  return result;
}

Prediction tiny_fsdp() {
  const std::string file = SHARDSIM_SOURCE_DIR "/examples/validate-tiny-llama.json";
  return predict_to_run(read_experiments(load_json(file), file).front(), false);
}

// Four processes of this memory.
template <class Memory>
class BackendWith : public FakeBackend {
 public:
  BackendWith() : FakeBackend({{}, {}, {}, {}}) {}
  [[nodiscard]] std::unique_ptr<DeviceMemory> memory() override {
    return std::make_unique<Memory>();
  }
};

}  // namespace

TEST_CASE("of each program the device that took most is told, with its categories") {
  const auto memory =
      compare_memory(stages(), simulated_stages(),
                     {measured(110, 64), measured(120, 65), measured(90, 8), measured(90, 9)});
  REQUIRE(memory.size() == 2);
  CHECK(memory[0].program == "first");
  CHECK(memory[0].rank == 1);
  CHECK(memory[0].peak.predicted == Bytes(100));
  CHECK(memory[0].peak.measured == Bytes(120));
  CHECK(memory[0].by_category[gradients].predicted == Bytes(60));
  CHECK(memory[0].by_category[gradients].measured == Bytes(65));
  CHECK(memory[0].shared() == Bytes(55));
  CHECK(memory[0].reserved == Bytes(240));
  CHECK(memory[1].rank == 2);  // the first of equal ones
  CHECK(memory[1].by_category[gradients].measured == Bytes(8));
  // 100 / 120 - 1 = -0.17 and 70 / 90 - 1 = -0.22.
  CHECK(memory[0].peak.relative_error().value() == Approx(100.0 / 120 - 1));
  CHECK(largest_error(memory).value() == Approx(1 - 70.0 / 90));
  CHECK_FALSE(largest_error({}).has_value());
}

// Ranks 0 and 2 share one memory, 1 and 3 another: 100 + 70 B each.
TEST_CASE("what processes need that share a memory is added up") {
  const auto shortage = [](std::int64_t first, std::int64_t second) {
    return memory_shortage(stages(), simulated_stages(),
                           {{"node1", Bytes(first)},
                            {"node2", Bytes(second)},
                            {"node1", Bytes(first)},
                            {"node2", Bytes(second)}});
  };
  CHECK_FALSE(shortage(170, 170).has_value());
  CHECK(shortage(170, 169).value() ==
        "buffers of 2 processes on node2 need 170 B, and may take 169 B");
  CHECK(memory_shortage(stages(), simulated_stages(), {{"node1", Bytes(99)}}).value() ==
        "buffers of 1 process on node1 need 100 B, and may take 99 B");
}

TEST_CASE("a step's memory is compared after it ran") {
  const Prediction prediction = tiny_fsdp();
  const auto& tasks = prediction.result.programs[0].tasks;
  FakeBackend backend(std::vector<std::vector<TaskSpan>>(4, std::vector<TaskSpan>(tasks.size())));
  constexpr std::int64_t page = 4096;
  backend.granule = page;
  const StepValidation validation = validate_step(prediction, backend, {});
  REQUIRE(validation.memory.size() == 1);
  const ComparedBytes& peak = validation.memory[0].peak;
  CHECK(peak.predicted == prediction.result.peak());
  CHECK(peak.measured >= peak.predicted);
  CHECK(peak.measured.count() % page == 0);
  const auto buffers = static_cast<std::int64_t>(prediction.step.plan.programs[0].buffers.size());
  CHECK(peak.measured <= peak.predicted + Bytes(buffers * (page - 1)));
}

TEST_CASE("memory that cannot be measured is a note, and no verdict") {
  const Prediction prediction = tiny_fsdp();
  const auto note_of = [&](Backend& backend) {
    const MemoryValidation memory =
        validate_memory(prediction.step.plan, prediction.result, backend);
    CHECK(memory.programs.empty());
    REQUIRE(memory.notes.size() == 1);
    return memory.notes.front();
  };
  class None : public FakeBackend {
   public:
    None() : FakeBackend({{}, {}, {}, {}}) {}
    [[nodiscard]] std::unique_ptr<DeviceMemory> memory() override { return nullptr; }
  };
  None none;
  CHECK(note_of(none) == "memory is not compared: the backend fake measures none");

  struct Small : FakeMemory {
    Small() : FakeMemory(Bytes(1), Bytes(MiB)) {}
  };
  BackendWith<Small> small;
  CHECK(note_of(small).starts_with("memory is not compared: buffers of 4 processes on here need "));

  struct Overrated : Small {
    [[nodiscard]] Bytes allowance() const override { return Bytes(GiB); }
  };
  BackendWith<Overrated> overrated;
  CHECK(note_of(overrated) == "memory is not compared: rank 0: no memory");
}

}  // namespace shardsim
