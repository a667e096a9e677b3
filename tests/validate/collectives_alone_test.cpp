// Steps without their kernels: what collectives wait for is what they waited for through them.
#include "validate/step/collectives_alone.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {
namespace {

bool communicates(const Task& task) {
  return task.kind == TaskKind::collective || task.kind == TaskKind::transfer;
}

// Of every task that communicates, in their order, the ones before that have ended when it begins:
// by dependencies and by the order of streams.
std::vector<std::set<std::size_t>> waited_for(const Program& program) {
  std::vector<std::set<std::size_t>> before(program.tasks.size());
  std::vector<std::set<std::size_t>> result;
  std::vector<TaskId> previous(program.streams.size(), -1);
  std::size_t number = 0;
  std::vector<std::set<std::size_t>> ended(program.tasks.size());
  for (std::size_t id = 0; id < program.tasks.size(); ++id) {
    const Task& task = program.tasks[id];
    for (const TaskId other : program.after(task)) {
      before[id].insert(ended[at(other)].begin(), ended[at(other)].end());
    }
    if (previous[task.stream] >= 0) {
      const auto& others = ended[at(previous[task.stream])];
      before[id].insert(others.begin(), others.end());
    }
    previous[task.stream] = static_cast<TaskId>(id);
    ended[id] = before[id];
    if (!communicates(task)) continue;
    result.push_back(before[id]);
    ended[id].insert(number++);
  }
  return result;
}

Prediction predicted(const Experiment& experiment) { return predict(experiment, {}); }

}  // namespace

TEST_CASE("collectives alone wait for what they waited for") {
  const std::string examples = SHARDSIM_SOURCE_DIR "/examples/";
  int steps = 0;
  for (const char* name : {"validate-tiny-llama.json", "llama-3.1-8b-8xh100.json"}) {
    for (const Experiment& experiment :
         read_experiments(load_json(examples + name), examples + name)) {
      if (experiment.name == "alone") continue;
      CAPTURE(name, experiment.name);
      ++steps;
      const Prediction prediction = predicted(experiment);
      const Plan& plan = prediction.step.plan;
      const Plan alone = collectives_alone(plan);
      REQUIRE(alone.programs.size() == plan.programs.size());
      for (std::size_t p = 0; p < plan.programs.size(); ++p) {
        std::vector<Task> left;
        for (const Task& task : plan.programs[p].tasks) {
          if (communicates(task)) left.push_back(task);
        }
        REQUIRE(alone.programs[p].tasks.size() == left.size());
        for (std::size_t i = 0; i < left.size(); ++i) {
          const Task& task = alone.programs[p].tasks[i];
          CHECK(task.work == left[i].work);
          CHECK(task.name == left[i].name);
          CHECK(task.stream == left[i].stream);
        }
        CHECK(waited_for(alone.programs[p]) == waited_for(plan.programs[p]));
      }
      const Result result =
          simulate(alone, prediction.machine, simulation_options(prediction.experiment, {}));
      CHECK(result.step_time > SimTime(0));
      CHECK(result.step_time <= prediction.result.step_time);
    }
  }
  CHECK(steps > 4);
}

TEST_CASE("a step of one device has no collectives") {
  const std::string file = SHARDSIM_SOURCE_DIR "/examples/validate-tiny-llama.json";
  for (const Experiment& experiment : read_experiments(load_json(file), file)) {
    if (experiment.name != "alone") continue;
    CHECK_THROWS_AS(collectives_alone(predicted(experiment).step.plan), InputError);
  }
}

}  // namespace shardsim
