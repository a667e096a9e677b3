#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "base/file.hpp"
#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "strategies/specs/coverage.hpp"

namespace shardsim {
namespace {

// But for sweeps, which are measured.
std::set<std::string> examples() {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(SHARDSIM_SOURCE_DIR "/examples")) {
    if (entry.path().filename().string().starts_with("sweep-")) continue;
    if (entry.path().extension() == ".json") paths.insert(entry.path().string());
  }
  return paths;
}

TEST_CASE("every example says what it teaches and has specs, or compiles to a sound plan") {
  REQUIRE_FALSE(examples().empty());
  for (const std::string& path : examples()) {
    INFO(path);
    CHECK(read_file(path).rfind("// ", 0) == 0);
    for (const Experiment& experiment : read_experiments(load_json(path), path)) {
      INFO(experiment.name);
      CHECK_FALSE(experiment_specs(experiment).parameters.empty());
      const Experiment again = read_experiments(*experiment.resolved, path).at(0);
      CHECK(*again.resolved == *experiment.resolved);
      if (const auto* model = std::get_if<ModelStep>(&experiment.subject)) {
        const CompiledStep step = compile_experiment(experiment);  // verifies the plan
        CHECK(step.plan.mesh == model->partitioning.mesh);
        CHECK(std::get<ModelStep>(again.subject).step == model->step);
      }
    }
  }
}

SpecSummary summary_of(const std::string& example, std::size_t variant) {
  const std::string path = SHARDSIM_SOURCE_DIR "/examples/" + example;
  return summarize(experiment_specs(read_experiments(load_json(path), path).at(variant)));
}

// The figures that the examples' first lines promise; tests/golden/param_trees has them from the
// upstream rule code.
TEST_CASE("the examples teach what they say") {
  CHECK(summary_of("vit-b16-fsdp8.json", 0).replication_overhead() == Approx(3.42).epsilon(0.002));
  CHECK(summary_of("vit-b16-fsdp8.json", 1).replication_overhead() < 1.1);
  const SpecSummary paligemma = summary_of("paligemma2-28b-fsdp256.json", 0);
  CHECK(paligemma.replicated_parameters == 413'004'528);
  CHECK(paligemma.replication_overhead() == Approx(4.81).epsilon(0.002));
  CHECK(summary_of("llama-3-8b-easydel.json", 0).max_bytes_per_device ==
        summary_of("llama-3-8b-easydel.json", 1).max_bytes_per_device);
  CHECK(summary_of("gpt3-175b-pax-1536.json", 0).indivisible.size() == 1);
  // deepseek2-16b: 981,773,824 parameters on a device of 16 under the default rules of MaxText.
  CHECK(summary_of("deepseek-v2-lite-maxtext.json", 0).max_parameters_per_device == 981'773'824);
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
