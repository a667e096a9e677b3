#include <algorithm>

#include "experiments/suggest.hpp"

#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report_format.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "compare EXPERIMENT... [OPTION...]",
    "Simulates several experiments, or all variants of one file, and sets them side by side: the\n"
    "best is the shortest step among those that fit. Flags apply to all of them.",
    {"shardsim compare examples/llama-3.1-8b-8xh100.json -o report.html -o report.csv",
     "shardsim compare examples/llama-3.1-8b-8xh100.json --name fsdp --name tp --batch 32",
     "shardsim compare examples/qwen3-1.7b-fsdp4.json examples/vit-b16-tpu-v5e.json"}};

}  // namespace

int compare_command(const Words& words) {
  boost::program_options::options_description options("Options");
  add_experiment_options(options);
  add_output_options(options, report_formats());
  options.add_options()("require-fit", "exit with 1 when none fits into memory");
  const std::optional<Given> answered = parse_or_help(words, options, manual);
  if (!answered) return exit_done;
  const Given& given = *answered;
  const auto outputs = read_outputs(given, report_formats(), /*text_beside_files=*/true);
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

}  // namespace shardsim
