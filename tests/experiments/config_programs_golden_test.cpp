// The same steps from a config.json and from JAX's StableHLO (tests/golden/config_programs): every
// collective is compared.
#include <catch2/catch.hpp>
#include <iostream>

#include "base/json.hpp"
#include "stablehlo/model_work.hpp"
#include "tests/experiments/step_collectives.hpp"

namespace shardsim::test {

TEST_CASE("steps from a config.json send what the same steps from StableHLO send") {
  const std::string file = SHARDSIM_SOURCE_DIR "/tests/golden/config_programs/steps.json";
  const Json steps = load_json(file);
  REQUIRE(!steps.empty());
  int same = 0;
  int known = 0;
  for (const Json& step : steps) {
    const std::string id = step.at("program");
    INFO(id);
    const CollectiveCounts program = collectives_of_program(id);
    const CollectiveCounts config = collectives_of_experiment(step.at("experiment"), file);
    if (step.contains("differs")) {
      CHECK(program != config);  // else the reason is out of date
      ++known;
    } else {
      CHECK(program == config);
      same += program == config ? 1 : 0;
    }
  }
  std::cout << "steps.json: " << same << " the same, " << known << " differ for a known reason, "
            << steps.size() - static_cast<std::size_t>(same + known) << " unexpected\n";
}

// The numerator of MFU is one convention: what a program says is worked out from its products, what
// a config.json says from its layers. Programs with rematerialization, which they compute, and
// scores written out, which they compute whole, among them. Where attention is a custom call it is
// all that a program lacks: P of P + A whole and P + A / 2 needed operations. Beside the splash
// kernel JAX multiplies each output by its gradient, 2 operations an element.
TEST_CASE("steps from a config.json and from StableHLO count the same model work") {
  const std::string file = SHARDSIM_SOURCE_DIR "/tests/golden/config_programs/steps.json";
  for (const Json& step : load_json(file)) {
    const std::string id = step.at("program");
    INFO(id);
    const auto path = plain_or_gzip(golden_folder("xla_models") / "programs" / (id + ".mlir.gz"));
    REQUIRE(path);
    const stablehlo::Module module = stablehlo::read_module(*path);
    const stablehlo::ModelWork program =
        stablehlo::model_work(module, *module.find_function("main"));
    const Experiment experiment = read_experiments(step.at("experiment"), file).at(0);
    const auto& model = std::get<ModelStep>(experiment.subject);
    const ModelFlops pass = model_flops(build_step(
        load_model_config(JsonReader(*model.model, {}), experiment.directory), model.step));
    const auto passes = static_cast<double>(model.step.microbatches);
    const bool is_custom_call = id.ends_with("-splash") || id.ends_with("-cudnn");
    const double full = passes * pass.full_attention.count();
    const double needed = passes * pass.needed.count();
    const double attention = 2 * (full - needed);  // 12 s of each output's element, whole
    const auto sequence = static_cast<double>(model.step.sequence.value_or(1));
    const double beside = id.ends_with("-splash") ? attention / (6 * sequence) : 0;
    const double products = full - attention + beside;
    CHECK(program.full_attention().count() ==
          Approx(is_custom_call ? products : full).epsilon(1e-9));
    CHECK(program.needed().count() == Approx(is_custom_call ? products : needed).epsilon(1e-9));
  }
}

}  // namespace shardsim::test
