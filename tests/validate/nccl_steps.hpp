// Steps of a plan on GPUs that are not there (fake_gpus.hpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "tests/validate/fake_gpus.hpp"
#include "validate/backends/nccl_backend.hpp"
#include "validate/exchange/thread_exchange.hpp"

namespace shardsim::testing {

using OnRank = std::function<void(Backend&)>;

// A thread for each rank, and a backend of the device with its number.
inline void on_gpus(std::int64_t ranks, const OnRank& work) {
  for (int device = 0; device < ranks; ++device) (void)take_fake_calls(device);
  run_in_threads(ranks, [&](Exchange& exchange) {
    Watchdog watchdog(std::chrono::seconds(60), [](const std::string&) {});
    const auto backend = make_nccl_backend(exchange, watchdog, static_cast<int>(exchange.rank()));
    work(*backend);
  });
}

// Spans of one step of each rank.
inline std::vector<std::vector<TaskSpan>> step_on_gpus(const Plan& plan) {
  std::vector<std::vector<TaskSpan>> spans(static_cast<std::size_t>(plan.mesh.devices()));
  on_gpus(plan.mesh.devices(), [&](Backend& backend) {
    backend.prepare(plan);
    spans[static_cast<std::size_t>(backend.exchange().rank())] = backend.run_step();
  });
  return spans;
}

// What a device called since it was last asked, but for the all-reduce that begins a step.
inline std::vector<FakeCall> calls_of(int device) {
  std::vector<FakeCall> calls = take_fake_calls(device);
  std::erase_if(calls, [](const FakeCall& call) {
    return call.name == "AllReduce" && call.count == 1 && call.type == "f32";
  });
  return calls;
}

inline Collective collective(CollectiveKind kind, std::vector<AxisRef> axes, DType dtype,
                             Bytes payload) {
  Collective made;
  made.kind = kind;
  made.axes = std::move(axes);
  made.dtype = dtype;
  made.payload = payload;
  return made;
}

inline Task task_of(TaskKind kind, std::int32_t work, std::uint8_t stream = 0) {
  Task task;
  task.kind = kind;
  task.work = work;
  task.stream = stream;
  return task;
}

// A program of all devices that runs every collective once, one after the other.
inline void add_program_of_all(Plan& plan) {
  plan.names = {"task"};
  Program program;
  program.name = "all";
  program.streams = {"compute"};
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    (void)program.add_task(task_of(TaskKind::collective, static_cast<std::int32_t>(i)), {});
  }
  plan.programs.push_back(std::move(program));
  verify(plan);
}

inline std::vector<Experiment> tiny_llama() {
  const std::string file = SHARDSIM_SOURCE_DIR "/examples/validate-tiny-llama.json";
  return read_experiments(load_json(file), file);
}

inline std::string mistake_of_step(const Plan& plan) {
  try {
    (void)step_on_gpus(plan);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace shardsim::testing
