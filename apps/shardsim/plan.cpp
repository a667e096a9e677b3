#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/outline.hpp"
#include "base/text.hpp"
#include "checks/measure.hpp"
#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "plan/plan_io.hpp"
#include "reports/step/explain_report.hpp"
#include "traces.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual plan_manual = {
    "plan EXPERIMENT [OPTION...]",
    "Prints what every device does in one step: its collectives with their groups, sizes and\n"
    "reasons, the schedule, and the buffers. Needs no machine.\n"
    "JSON holds everything; text and DOT show layers that do the same once.\n"
    "--explain tells of each collective why it is there, what would avoid it and what it costs,\n"
    "the most expensive first (docs/explain.md): as text, json or markdown. With a machine, by "
    "the\n"
    "time it takes.\n"
    "-o step.et writes Chakra execution traces, one per rank, as ASTRA-sim reads them; with a\n"
    "machine, with the times that are simulated. With one, -o step.perfetto-trace is the step's\n"
    "timeline for ui.perfetto.dev, -o step.trace.json the same in Chrome's format "
    "(docs/export.md).",
    {"shardsim plan examples/qwen3-1.7b-fsdp4.json",
     "shardsim plan examples/qwen3-1.7b-fsdp4.json --format json -o plan.json",
     "shardsim plan examples/llama-3.1-8b-8xh100.json --name tp -o plan.dot",
     "shardsim plan examples/llama-3.1-8b-8xh100.json --name tp --explain",
     "shardsim plan examples/llama-3.1-8b-8xh100.json --name tp --stop-after layout",
     "shardsim plan --program examples/programs/mlp-fsdp-tp.mlir --explain",
     "shardsim plan examples/qwen3-1.7b-fsdp4.json -o step.et",
     "shardsim plan examples/qwen3-1.7b-fsdp4.json -o step.perfetto-trace"}};

std::string render(const Plan& plan, const Output& output) {
  if (output.format == "json") return plan_to_json(plan).dump(1) + "\n";
  if (output.format == "dot") return plan_to_dot(plan);
  return plan_to_text(plan, output.width);
}

std::string render(const Explanation& explanation, const Output& output) {
  if (output.format == "json") return explain_json(explanation);
  if (output.format == "markdown") return explain_markdown(explanation);
  return explain_text(explanation, output.width);
}

// A station on the way to the plan, whose name is given.
int show_station(const Given& given) {
  if (given.has("explain")) throw UsageError("--explain is of the plan, after the last pass");
  if (given.has("ranks")) throw UsageError("--ranks is for Chakra traces: -o step.et");
  const auto name = given.all("stop-after").back();
  std::vector<std::string> known;
  for (const NamedPass& pass : compile_passes()) known.emplace_back(pass.name);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string suggestion = closest(name, known);
    throw UsageError(
        fmt::format("--stop-after: there is no pass \"{}\"{}; there are {}", name,
                    suggestion.empty() ? "" : fmt::format(", did you mean \"{}\"?", suggestion),
                    fmt::join(known, ", ")));
  }
  const auto outputs = read_outputs(given, {"text", "json"});
  const Json station = compile_until(read_given_experiment(given), name);
  write(outputs, [&](const Output& output) {
    return output.format == "json" ? station.dump(1) + "\n" : outline(station, output.width);
  });
  return exit_done;
}

// To the side: what is printed is the same at every run.
void print_times(const CompiledStep& step) {
  for (const PassTime& one : step.times) {
    std::cerr << fmt::format("{:10}{:>10}\n", one.pass, format_seconds(one.time));
  }
}

int explain_plan(const Given& given) {
  if (given.has("ranks")) throw UsageError("--ranks is for Chakra traces: -o step.et");
  const auto outputs = read_outputs(given, {"text", "json", "markdown"});
  const Explanation explanation = explain_with_remedies(read_given_experiment(given));
  write(outputs, [&](const Output& output) { return render(explanation, output); });
  return exit_done;
}

// Simulated where something is to show for it.
std::optional<Prediction> simulated(const Experiment& experiment, bool needs_times,
                                    bool shows_times) {
  if (!experiment.machine.empty() && (needs_times || shows_times)) {
    return predict(experiment, simulation_for_traces());
  }
  if (!needs_times) return std::nullopt;
  throw InputError(
      {experiment.file, ""},
      "a timeline needs a machine to simulate the plan on: name a \"machine\", or give "
      "--machine");
}

int write_plan(const Given& given) {
  auto outputs = read_outputs(given, {"text", "json", "dot", "perfetto", "chrome", "chakra"});
  const std::vector<std::string> chakra_paths = take_chakra(given, outputs);
  const Experiment experiment = read_given_experiment(given);
  const std::optional<Prediction> prediction =
      simulated(experiment, wants_trace(outputs), !chakra_paths.empty());
  const Result* times = prediction ? &prediction->result : nullptr;
  const CompiledStep step = prediction ? prediction->step : compile_experiment(experiment);
  if (given.has("timings")) print_times(step);
  Plan plan = step.plan;
  // A plan has one list of what its reader must know.
  plan.notes.insert(plan.notes.end(), step.warnings.begin(), step.warnings.end());
  std::optional<ChakraTraces> chakra;
  std::vector<std::int64_t> ranks;
  if (!chakra_paths.empty()) {
    chakra.emplace(plan, times);
    ranks = chosen_ranks(given, *chakra);
  }
  write(outputs, [&](const Output& output) {
    return is_trace(output.format) ? render_trace(*prediction, output.format)
                                   : render(plan, output);
  });
  if (chakra) write_chakra(chakra_paths, *chakra, ranks);
  return exit_done;
}

std::string pass_help() {
  std::string text = "what the step is after a pass on the way to the plan, as text or json:";
  for (const NamedPass& pass : compile_passes()) {
    text += fmt::format(" {} ({}){}", pass.name, pass.makes,
                        pass.name == compile_passes().back().name ? "" : ";");
  }
  return text;
}

void add_plan_options(po::options_description& options) {
  add_experiment_options(options);
  options.add_options()("explain", "why each collective is there, and what would avoid it")(
      "stop-after", po::value<std::string>()->value_name("PASS"), pass_help().c_str())(
      "timings", "how long each pass took, to stderr");
  add_ranks_option(options);
  add_output_options(options, {"text", "json", "dot", "markdown", "perfetto", "chrome", "chakra"});
}

int run_plan(const Given& given) {
  if (given.has("stop-after")) return show_station(given);
  if (given.has("explain")) return explain_plan(given);
  return write_plan(given);
}

}  // namespace

Verb plan_verb() {
  return {"plan", "what every device does in one step", plan_manual, add_plan_options, run_plan};
}

}  // namespace shardsim
