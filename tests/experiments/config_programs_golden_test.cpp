// The same steps from a config.json and from JAX's StableHLO (tests/golden/config_programs): every
// collective is compared.
#include <catch2/catch.hpp>
#include <iostream>

#include "base/json.hpp"
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

}  // namespace shardsim::test
