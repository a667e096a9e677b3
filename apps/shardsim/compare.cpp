#include <algorithm>

#include "experiments/suggest.hpp"

#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report_format.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual compare_manual = {
    "compare EXPERIMENT... [OPTION...]",
    "Simulates several experiments, or all variants of one file, and sets them side by side: the\n"
    "best is the shortest step among those that fit, or, where steps have different numbers of\n"
    "tokens, the shortest time per token. Flags apply to all of them; one that holds a list, or "
    "is\n"
    "repeated, makes variants, each combined with each.",
    {"shardsim compare examples/llama-3.1-8b-8xh100.json -o report.html -o report.csv",
     "shardsim compare examples/llama-3.1-8b-8xh100.json --name fsdp --name tp --batch 32",
     "shardsim compare examples/qwen3-1.7b-fsdp4.json examples/vit-b16-tpu-v5e.json",
     "shardsim compare --model llama-3.1-8b --batch 32,64 --sequence 4096 --machine dgx-h100 \\\n"
     "               --mesh data=8 --strategy dp,fsdp --rematerialization full"}};

void add_compare_options(po::options_description& options) {
  add_experiment_options(options);
  add_output_options(options, report_formats());
  options.add_options()("require-fit", "exit with 1 when none fits into memory");
}

int run_compare(const Given& given) {
  const auto outputs = read_outputs(given, report_formats());
  const std::vector<Experiment> experiments = read_given_experiments(given);
  SimulationOptions simulation;
  simulation.keep_timeline = wants(outputs, "html");
  if (wants(outputs, "html") || wants(outputs, "json")) simulation.link_bins = report_link_bins;
  std::vector<Prediction> predictions;
  Progress progress(experiments.size());
  for (const Experiment& experiment : experiments) {
    progress.begin(experiment.name);
    predictions.push_back(predict(experiment, simulation));
    predictions.back().suggestions = suggest_to_fit(predictions.back());
  }
  progress.clear();
  write(outputs, [&](const Output& output) {
    return report_comparison(predictions, report_format(output.format), output.width);
  });
  const bool any_fits = std::any_of(predictions.begin(), predictions.end(),
                                    [](const Prediction& one) { return one.result.fits(); });
  return given.has("require-fit") && !any_fits ? exit_verdict_is_no : exit_done;
}

}  // namespace

Verb compare_verb() {
  return {"compare", "several experiments side by side; the best and why", compare_manual,
          add_compare_options, run_compare};
}

}  // namespace shardsim
