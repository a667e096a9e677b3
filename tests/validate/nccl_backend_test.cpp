// Plans on GPUs that are not there: calls of NCCL and cuBLAS, and times by the rules of streams and
// events (fake_gpus.hpp).
#include "validate/backends/nccl_backend.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/validate/nccl_steps.hpp"
#include "validate/exchange/membership.hpp"
#include "validate/step/validate_step.hpp"

namespace shardsim {

using namespace testing;  // NOLINT(google-build-using-namespace)

// Mesh of 2 x 2: device 1 is (0, 1), with 0 in its group of the second axis, with 3 in that of the
// first. Bytes over members, but for reductions, which are in elements: 4096 / 4 members / 4 bytes.
TEST_CASE("collectives are NCCL's calls on the communicators of their axes") {
  fake_gpus() = {};
  Plan plan;
  plan.mesh = Mesh({{"data", 2}, {"model", 2}});
  const AxisRef data = plan.mesh.whole(0);
  const AxisRef model = plan.mesh.whole(1);
  using Kind = CollectiveKind;
  plan.collectives = {collective(Kind::all_reduce, {model}, DType::bf16, Bytes(1024)),
                      collective(Kind::all_gather, {data}, DType::bf16, Bytes(1000)),
                      collective(Kind::reduce_scatter, {data, model}, DType::f32, Bytes(4096)),
                      collective(Kind::all_to_all, {model}, DType::f32, Bytes(1024)),
                      collective(Kind::broadcast, {data}, DType::f32, Bytes(512)),
                      collective(Kind::collective_permute, {}, DType::f32, Bytes(256))};
  plan.collectives.back().source_targets = {{0, 1}, {1, 2}};
  add_program_of_all(plan);
  (void)step_on_gpus(plan);
  CHECK(calls_of(1) == std::vector<FakeCall>{{1, "AllReduce", 512, "bf16", {0, 1}},
                                             {1, "AllGather", 500, "i8", {1, 3}},
                                             {1, "ReduceScatter", 256, "f32", {0, 1, 2, 3}},
                                             {1, "Send", 512, "i8", {0, 1}},
                                             {1, "Recv", 512, "i8", {0, 1}},
                                             {1, "Send", 512, "i8", {0, 1}},
                                             {1, "Recv", 512, "i8", {0, 1}},
                                             {1, "Broadcast", 512, "i8", {1, 3}},
                                             {1, "Send", 256, "i8", {0, 1, 2, 3}},
                                             {1, "Recv", 256, "i8", {0, 1, 2, 3}}});
  // Device 3 is in none of the permute's pairs.
  CHECK(calls_of(3).back() == FakeCall{3, "Broadcast", 512, "i8", {1, 3}});
}

// The execution model of plan.hpp: a task starts when the one before on its stream and what it
// waits for have ended, whichever is last, and at once where there is neither.
TEST_CASE("streams run side by side, and wait for what the plan says") {
  fake_gpus() = {};
  for (const Experiment& experiment : tiny_llama()) {
    CAPTURE(experiment.name);
    const Plan plan = predict_to_run(experiment, true).step.plan;
    const auto spans = step_on_gpus(plan);
    const Program& program = plan.programs.front();
    bool overlaps = false;
    for (const auto& of_rank : spans) {
      std::vector<double> stream_ends(program.streams.size(), 0.0);
      for (std::size_t i = 0; i < program.tasks.size(); ++i) {
        const Task& task = program.tasks[i];
        double ready = stream_ends[task.stream];
        for (const TaskId before : program.after(task)) {
          ready = std::max(ready, of_rank[static_cast<std::size_t>(before)].end.count());
        }
        REQUIRE(of_rank[i].start.count() == Approx(ready).margin(1e-9));
        stream_ends[task.stream] = of_rank[i].end.count();
        const double last = *std::max_element(stream_ends.begin(), stream_ends.end());
        overlaps |= of_rank[i].start.count() < last - 1e-9;
      }
    }
    // Else nothing was seen of the streams: fsdp gathers ahead.
    if (experiment.name == "fsdp") CHECK(overlaps);
  }
}

TEST_CASE("a validated step has the times of its collectives, and what NCCL expects") {
  fake_gpus() = {};
  for (const Experiment& experiment : tiny_llama()) {
    if (experiment.name != "fsdp") continue;
    const Prediction prediction = predict_to_run(experiment, true);
    std::optional<StepValidation> validation;
    on_gpus(4, [&](Backend& backend) {
      const StepValidation mine = validate_step(prediction, backend, {});
      if (backend.exchange().rank() == 0) validation = mine;
    });
    REQUIRE(validation);
    std::size_t collectives = 0;
    for (const ValidatedTask& task : validation->tasks) {
      if (task.task_kind != TaskKind::collective) continue;
      CAPTURE(task.name, task.kind);
      ++collectives;
      const double parts = task.kind == "all-reduce" ? 1 : 4;
      const double bytes = static_cast<double>(task.payload.count()) / parts;
      CHECK(task.time.measured.count() == Approx(10e-6 + bytes / 1e11).epsilon(1e-4));
      CHECK(task.estimated.value().count() == Approx(25e-6));
    }
    CHECK(collectives > 0);
    CHECK(validation->repeats == Repeats().least);
    CHECK(validation->on.library == "NCCL 2.28.9, CUDA 13.0, a driver for CUDA 13.1, NVIDIA H200");
  }
}

TEST_CASE("of a step the collectives alone are run") {
  fake_gpus() = {};
  const std::vector<Experiment> experiments = tiny_llama();
  const auto fsdp =
      std::find_if(experiments.begin(), experiments.end(),
                   [](const Experiment& experiment) { return experiment.name == "fsdp"; });
  const Prediction whole = predict_to_run(*fsdp, true);
  const Prediction prediction = predict_to_run(*fsdp, true, RunPart::collectives);
  const auto communicates = [](const Task& task) { return task.kind == TaskKind::collective; };
  const std::vector<Task>& tasks = prediction.step.plan.programs.front().tasks;
  CHECK(std::all_of(tasks.begin(), tasks.end(), communicates));
  const std::vector<Task>& all = whole.step.plan.programs.front().tasks;
  CHECK(std::ssize(tasks) == std::count_if(all.begin(), all.end(), communicates));
  std::optional<StepValidation> validation;
  on_gpus(4, [&](Backend& backend) {
    const StepValidation mine = validate_step(prediction, backend, {});
    if (backend.exchange().rank() == 0) validation = mine;
  });
  REQUIRE(validation);
  CHECK(validation->tasks.size() == tasks.size());
  CHECK(validation->memory.empty());
  const std::vector<FakeCall> calls = calls_of(0);
  CHECK(std::none_of(calls.begin(), calls.end(), [](const FakeCall& call) {
    return call.name == "GemmEx" || call.name == "Saxpy";
  }));
}

// A pool's granules are of 512 B: the peak is more than the simulated by less than that a buffer.
TEST_CASE("the peak of memory is what the pool says") {
  fake_gpus() = {};
  const Prediction prediction = predict_to_run(tiny_llama().front(), true);
  std::optional<StepValidation> validation;
  on_gpus(4, [&](Backend& backend) {
    const StepValidation mine = validate_step(prediction, backend, {});
    if (backend.exchange().rank() == 0) validation = mine;
  });
  REQUIRE(validation->memory.size() == 1);
  const ValidatedMemory& memory = validation->memory.front();
  const auto buffers =
      static_cast<std::int64_t>(prediction.step.plan.programs.front().buffers.size());
  CHECK(memory.peak.predicted == prediction.result.programs.front().peak);
  CHECK(memory.peak.measured >= memory.peak.predicted);
  CHECK(memory.peak.measured < memory.peak.predicted + Bytes(512 * buffers));
  CHECK(memory.reserved >= memory.peak.measured);
  const auto is_of_context = [](const std::string& note) {
    return note.find("for context") != std::string::npos;
  };
  CHECK(std::any_of(validation->notes.begin(), validation->notes.end(), is_of_context));
}

// The kernel takes 1 ms: a message that is sent after it ends at 1 ms + 10 us + 1 MB at 100 GB/s.
// Who waits for it has waited since it began.
TEST_CASE("messages go from program to program") {
  fake_gpus() = {};
  Plan plan;
  plan.mesh = Mesh({{"stage", 2}});
  plan.names = {"task"};
  plan.kernels = {{"norm", KernelClass::memory, DType::f32, Flops(0), Bytes(1'000'000'000)}};
  plan.transfers = {{1, true, DType::bf16, Bytes(1'000'000), "activations"},
                    {0, false, DType::bf16, Bytes(1'000'000), "activations"}};
  for (const std::int64_t stage : {0, 1}) {
    Program program;
    program.name = stage == 0 ? "first" : "last";
    program.devices = {stage};
    program.streams = {"compute"};
    if (stage == 0) (void)program.add_task(task_of(TaskKind::kernel, 0), {});
    (void)program.add_task(task_of(TaskKind::transfer, stage == 0 ? 0 : 1), {});
    plan.programs.push_back(std::move(program));
  }
  verify(plan);
  const auto spans = step_on_gpus(plan);
  CHECK(spans[0][1].start.count() == Approx(1e-3).epsilon(1e-4));
  CHECK(spans[0][1].end.count() == Approx(1e-3 + 20e-6).epsilon(1e-4));
  CHECK(spans[1][0].start.count() == Approx(0).margin(1e-9));
  CHECK(calls_of(1) == std::vector<FakeCall>{{1, "Recv", 1'000'000, "i8", {0, 1}}});
}

TEST_CASE("what NCCL expects is told of what it has a model for") {
  fake_gpus() = {};
  Plan plan;
  plan.mesh = Mesh({{"data", 2}});
  const AxisRef data = plan.mesh.whole(0);
  plan.collectives = {collective(CollectiveKind::all_reduce, {data}, DType::bf16, Bytes(1024)),
                      collective(CollectiveKind::all_to_all, {data}, DType::bf16, Bytes(1024))};
  add_program_of_all(plan);
  on_gpus(2, [&](Backend& backend) {
    backend.prepare(plan);
    const auto estimates = backend.estimates();
    if (backend.exchange().rank() != 0) return;  // assertions are of one thread
    REQUIRE(estimates.size() == 2);
    CHECK(estimates[0].value().count() == Approx(25e-6));
    CHECK_FALSE(estimates[1].has_value());
  });
  CHECK(calls_of(0).empty());  // it asked, and ran nothing
}

TEST_CASE("what cannot be run is refused by all alike") {
  fake_gpus() = {};
  Plan plan;
  plan.mesh = Mesh({{"data", 2}});
  plan.collectives = {
      collective(CollectiveKind::all_reduce, {plan.mesh.whole(0)}, DType::i4, Bytes(1024))};
  add_program_of_all(plan);
  CHECK_THAT(mistake_of_step(plan), Catch::Contains("NCCL does not sum int4"));
  plan.collectives.front().dtype = DType::f32;
  CHECK(mistake_of_step(plan).empty());

  Plan uneven;
  uneven.mesh = Mesh({{"stage", 2}});
  uneven.names = {"task"};
  uneven.transfers = {{1, true, DType::bf16, Bytes(10), ""}};
  uneven.programs.resize(2);
  uneven.programs[0] = {"one", {0}, {"compute"}, {}, {}, {}, {}};
  uneven.programs[1] = {"both", {0, 1}, {"compute"}, {}, {}, {}, {}};
  (void)uneven.programs[0].add_task(task_of(TaskKind::transfer, 0), {});
  CHECK_THROWS_WITH(check_messages(uneven),
                    "program one: messages between programs of 1 and 2 devices are simulated, but "
                    "not run");

  plan.kernels = {{"einsum", KernelClass::matmul, DType::f4_e2m1, Flops(1e9), Bytes(1000)}};
  (void)plan.programs.front().add_task(task_of(TaskKind::kernel, 0), {});
  CHECK_THAT(mistake_of_step(plan), Catch::Contains("products of fp4_e2m1"));

  plan.kernels.front().dtype = DType::bf16;
  on_gpus(1, [&](Backend& backend) {
    CHECK_THROWS_WITH(backend.prepare(plan), Catch::Contains("a mesh of 2 devices for 1 rank"));
  });
}

TEST_CASE("a process that is gone is told by NCCL, and ends the step of all others") {
  fake_gpus() = {};
  fake_gpus().kernels_hang = true;
  fake_gpus().communicators_fail = true;
  Plan plan = predict_to_run(tiny_llama().front(), true).step.plan;
  CHECK_THAT(mistake_of_step(plan), Catch::Contains("remote process exited"));
}

// The first task that hangs is a kernel. What is told of earlier, on a busy machine, is left alone.
TEST_CASE("who waits in vain says for what") {
  fake_gpus() = {};
  fake_gpus().kernels_hang = true;
  const Plan plan = predict_to_run(tiny_llama().front(), true).step.plan;
  const auto& tasks = plan.programs.front().tasks;
  const auto kernel = std::find_if(tasks.begin(), tasks.end(),
                                   [](const Task& task) { return task.kind == TaskKind::kernel; });
  const std::string name = plan.task_name(*kernel);
  std::atomic<int> told = 0;
  const auto work = [&](Exchange& exchange) {
    Watchdog watchdog(std::chrono::milliseconds(500), [&](const std::string& what) {
      if (what != name) return;
      ++told;
      std::atomic_ref(fake_gpus().communicators_fail) = true;  // so that it ends
    });
    const auto backend = make_nccl_backend(exchange, watchdog, static_cast<int>(exchange.rank()));
    backend->prepare(plan);
    (void)backend->run_step();
  };
  CHECK_THROWS_AS(run_in_threads(plan.mesh.devices(), work), CannotRunError);
  CHECK(told > 0);
}

TEST_CASE("no driver is an error with what is wrong") {
  fake_gpus() = {};
  CHECK(gpus_of_process() == 8);
  fake_gpus().driver_is_missing = true;
  CHECK_THROWS_WITH(gpus_of_process(), Catch::Contains("finds no driver"));
}

}  // namespace shardsim
