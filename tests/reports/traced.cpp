#include "traced.hpp"

#include <random>

#include "base/index.hpp"
#include "base/json.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/plan_builder.hpp"

namespace shardsim::traced {

using testing::PlanBuilder;

namespace {

SimulationOptions all_kept() {
  SimulationOptions options;
  options.keep_timeline = true;
  options.link_bins = 10;
  return options;
}

Prediction example(const std::string& file, const std::string& name) {
  const std::string path = SHARDSIM_SOURCE_DIR "/examples/" + file;
  return predict(read_experiments(load_json(path), path, {name}).at(0), all_kept());
}

const Prediction& fsdp_on_tpus() {
  static const Prediction prediction = example("qwen3-1.7b-fsdp4.json", "qwen3-1.7b-fsdp4");
  return prediction;
}

}  // namespace

const Prediction& fsdp_and_tp() {
  static const Prediction prediction = example("llama-3.1-8b-8xh100.json", "fsdp+tp");
  return prediction;
}

std::vector<const Prediction*> examples() { return {&fsdp_on_tpus(), &fsdp_and_tp()}; }

Plan two_stages() {
  PlanBuilder b({{"stage", 2}, {"x", 2}});
  b.plan.programs[0].name = "first";
  b.plan.programs[0].devices = {0, 1};
  b.add_program("second", {2, 3});
  const TaskId computed = b.kernel(100);
  const TaskId gathered = b.gather(20, {computed}, 1, /*axis=*/1);
  const TaskId sent = b.transfer(/*sends=*/true, 1, 30, {gathered});
  const TaskId back = b.transfer(/*sends=*/false, 1, 10, {sent});
  b.kernel(10, {back});
  b.buffer("weights", 7, before_the_step, {});
  b.buffer("gathered", 20, gathered, {sent}, BufferCategory::gathered_parameters);
  b.current = 1;
  b.kernel(30);
  const TaskId received = b.transfer(/*sends=*/false, 0, 30);
  const TaskId answered = b.kernel(10, {received});
  b.transfer(/*sends=*/true, 0, 10, {answered});
  verify(b.plan);
  return b.plan;
}

Plan random_plan(unsigned seed) {
  std::mt19937 numbers(seed);
  const auto below = [&](unsigned limit) { return static_cast<int>(numbers() % limit); };
  PlanBuilder b({{"stage", 2}, {"x", 2}});
  b.plan.programs[0].devices = {0, 1};
  b.add_program("second", {2, 3});
  const auto some_earlier = [&] {
    std::vector<TaskId> after;
    const auto count = static_cast<unsigned>(b.plan.programs[b.current].tasks.size());
    for (int i = below(3); i > 0 && count > 0; --i) after.push_back(below(count));
    return after;
  };
  for (int tasks = 1 + below(40); tasks > 0; --tasks) {
    const int from = below(2);
    b.current = at(from);
    const std::int64_t duration = below(8) * 100;
    switch (below(3)) {
      case 0:
        b.kernel(duration, some_earlier());
        break;
      case 1:
        b.gather(duration, some_earlier(), 1 + below(2), /*axis=*/1);
        break;
      default:
        b.transfer(/*sends=*/true, 1 - from, duration, some_earlier());
        b.current = at(1 - from);
        b.transfer(/*sends=*/false, from, duration, some_earlier());
    }
  }
  return b.plan;
}

Prediction simulated(Plan plan) {
  Prediction prediction;
  prediction.machine = testing::round_node(plan.mesh.devices());
  prediction.result = simulate(plan, prediction.machine, all_kept());
  prediction.step.plan = std::move(plan);
  return prediction;
}

}  // namespace shardsim::traced
