#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "base/file.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {
namespace {

std::set<std::string> examples() {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(SHARDSIM_SOURCE_DIR "/examples")) {
    if (entry.path().extension() == ".json") paths.insert(entry.path().string());
  }
  return paths;
}

TEST_CASE("every example says what it teaches and compiles to a sound plan") {
  REQUIRE_FALSE(examples().empty());
  for (const std::string& path : examples()) {
    INFO(path);
    CHECK(read_file(path).rfind("// ", 0) == 0);
    for (const Experiment& experiment : read_experiments(load_json(path), path)) {
      INFO(experiment.name);
      const CompiledStep step = compile_experiment(experiment);  // verifies the plan
      CHECK(step.plan.mesh == experiment.mesh);
      CHECK(read_experiments(experiment.resolved, path).at(0).resolved == experiment.resolved);
    }
  }
}

TEST_CASE("the same experiment gives the same prediction") {
  const std::string path = SHARDSIM_SOURCE_DIR "/examples/llama-3.1-8b-8xh100.json";
  const Experiment experiment = read_experiments(load_json(path), path).at(1);
  const Prediction one = predict(experiment, {});
  const Prediction two = predict(experiment, {});
  CHECK(one.step.plan == two.step.plan);
  CHECK(one.result.step_time == two.result.step_time);
}

}  // namespace
}  // namespace shardsim
