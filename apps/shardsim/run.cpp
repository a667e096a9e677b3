#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "experiments/suggest.hpp"
#include "launch/launch.hpp"

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
    "in Chrome's trace format (docs/export.md).\n"
    "-o megatron.args, torchtitan.toml, deepspeed.json or maxtext.yml is what launches the step "
    "in\n"
    "that framework (docs/own-files.md).",
    {"shardsim run examples/qwen3-1.7b-fsdp4.json",
     "shardsim run examples/qwen3-1.7b-fsdp4.json --batch 32 --set strategy.prefetch=2",
     "shardsim run examples/llama-3.1-8b-8xh100.json --name fsdp -o fsdp.html",
     "shardsim run examples/llama-3.1-8b-8xh100.json --name fsdp -o fsdp.perfetto-trace",
     "shardsim run examples/llama-3.1-8b-megatron.json -o megatron.args",
     ("shardsim run --model llama-3.1-8b --step train --batch 64 --sequence 8192 \\\n"
      "               --machine dgx-h100 --mesh data=2,fsdp=4 --strategy fsdp --format json")}};

std::vector<std::string> all_formats() {
  std::vector<std::string> formats = report_formats();
  for (const std::string& format : trace_formats()) formats.push_back(format);
  for (const LaunchFramework& framework : launch_frameworks()) {
    if (framework.written) formats.emplace_back(framework.name);
  }
  return formats;
}

bool is_launch(const std::string& format) {
  const auto& known = launch_frameworks();
  return std::any_of(known.begin(), known.end(),
                     [&](const LaunchFramework& framework) { return framework.name == format; });
}

constexpr std::int64_t usual_node = 8;

std::int64_t devices_of_node(const Machine& machine) {
  if (machine.devices % machine.nodes == 0 && machine.nodes > 1) {
    return machine.devices / machine.nodes;
  }
  return usual_node;
}

// What the file does not say is said beside it.
std::string render_launch(const Prediction& prediction, const std::string& format) {
  const WrittenLaunch written =
      write_launch(prediction.experiment, format, devices_of_node(prediction.machine));
  for (const std::string& note : written.notes) {
    fmt::print(stderr, "shardsim: {}: {}\n", format, note);
  }
  return written.text;
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
    if (is_launch(output.format)) return render_launch(prediction, output.format);
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
