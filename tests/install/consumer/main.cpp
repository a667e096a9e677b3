// A program that links the installed library: reads an experiment, predicts, prints the step time
// in seconds.
#include <cstdio>
#include <exception>

#include "base/json.hpp"
#include "experiments/experiment.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const shardsim::Json document = shardsim::load_json(argv[1]);
    for (const shardsim::Experiment& experiment : shardsim::read_experiments(document, argv[1])) {
      const shardsim::Prediction prediction = shardsim::predict(experiment, {});
      const double step_time = shardsim::to_seconds(prediction.result.step_time).count();
      std::puts(shardsim::Json(step_time).dump().c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
