// Plans laid into one stream: laws that hold for any.
#include "validate/step/serialize_streams.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {
namespace {

Prediction predicted(const std::string& name) {
  const std::string file = SHARDSIM_SOURCE_DIR "/examples/validate-tiny-llama.json";
  for (const Experiment& experiment : read_experiments(load_json(file), file)) {
    if (experiment.name == name) return predict(experiment, {});
  }
  FAIL("no experiment " << name);
  throw std::logic_error(name);
}

// What tasks are, whatever their order.
std::vector<std::tuple<TaskKind, std::int32_t, std::int32_t, std::int32_t>> works(
    const Program& program) {
  std::vector<std::tuple<TaskKind, std::int32_t, std::int32_t, std::int32_t>> all;
  for (const Task& task : program.tasks) {
    all.emplace_back(task.kind, task.work, task.name, task.layer);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("a plan in one stream has the same tasks and takes their sum") {
  for (const char* name : {"fsdp", "tp"}) {
    CAPTURE(name);
    const Prediction prediction = predicted(name);
    const Plan& plan = prediction.step.plan;
    const Plan serial = serialize_streams(plan, prediction.result);
    REQUIRE(serial.programs.size() == 1);
    REQUIRE(serial.programs[0].streams == std::vector<std::string>{"compute"});
    CHECK(works(serial.programs[0]) == works(plan.programs[0]));
    CHECK(serial.programs[0].buffers.size() == plan.programs[0].buffers.size());

    const Result result =
        simulate(serial, prediction.machine, simulation_options(prediction.experiment, {}));
    SimTime sum{0};
    for (const TaskTimes& task : result.programs[0].tasks) sum += task.end - task.start;
    CHECK(result.step_time == sum);
    // Nothing is done twice at the same time: never shorter than with streams.
    CHECK(result.step_time >= prediction.result.step_time);
  }
}

TEST_CASE("a plan in one stream is itself laid into one stream as it is") {
  const Prediction prediction = predicted("fsdp");
  const Plan serial = serialize_streams(prediction.step.plan, prediction.result);
  const Result result =
      simulate(serial, prediction.machine, simulation_options(prediction.experiment, {}));
  CHECK(serialize_streams(serial, result) == serial);
}

}  // namespace shardsim
