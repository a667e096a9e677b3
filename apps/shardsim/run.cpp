#include "experiments/suggest.hpp"

#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "report_format.hpp"
#include "traces.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual run_manual = {
    "run EXPERIMENT [OPTION...]",
    "Simulates one training step: how long it takes and why, what memory it needs and for what,\n"
    "which collectives it runs and how much of them computation hides.\n"
    "An EXPERIMENT is a JSON file; flags change its fields, or replace it when they say it all.\n"
    "-o step.perfetto-trace is the step's timeline for ui.perfetto.dev, -o step.trace.json the "
    "same\n"
    "in Chrome's trace format (docs/export.md).",
    {"shardsim run examples/qwen3-1.7b-fsdp4.json",
     "shardsim run examples/qwen3-1.7b-fsdp4.json --batch 32 --set strategy.prefetch=2",
     "shardsim run examples/llama-3.1-8b-8xh100.json --name fsdp -o fsdp.html",
     "shardsim run examples/llama-3.1-8b-8xh100.json --name fsdp -o fsdp.perfetto-trace",
     ("shardsim run --model llama-3.1-8b --step train --batch 64 --sequence 8192 \\\n"
      "               --machine dgx-h100 --mesh data=2,fsdp=4 --strategy fsdp --format json")}};

std::vector<std::string> all_formats() {
  std::vector<std::string> formats = report_formats();
  for (const std::string& format : trace_formats()) formats.push_back(format);
  return formats;
}

void add_run_options(po::options_description& options) {
  add_experiment_options(options);
  add_output_options(options, all_formats());
  options.add_options()("require-fit", "exit with 1 when the memory does not suffice");
}

int simulate_one(const Given& given) {
  const auto outputs = read_outputs(given, all_formats());
  const Experiment experiment = read_given_experiment(given);
  SimulationOptions simulation;
  if (wants_trace(outputs)) simulation = simulation_for_traces();
  simulation.keep_timeline |= wants(outputs, "html");
  if (wants(outputs, "html") || wants(outputs, "json")) simulation.link_bins = report_link_bins;
  Prediction prediction = predict(experiment, simulation);
  prediction.suggestions = suggest_to_fit(prediction);
  write(outputs, [&](const Output& output) {
    return is_trace(output.format)
               ? render_trace(prediction, output.format)
               : report_run(prediction, report_format(output.format), output.width);
  });
  return given.has("require-fit") && !prediction.result.fits() ? exit_verdict_is_no : exit_done;
}

}  // namespace

Verb run_verb() {
  return {"run", "simulate one experiment: time, memory, communication", run_manual,
          add_run_options, simulate_one};
}

}  // namespace shardsim
