#include "base/json.hpp"
#include "command.hpp"
#include "experiment_options.hpp"
#include "experiments/program.hpp"
#include "output.hpp"
#include "plan/plan_io.hpp"
#include "reports/explain_report.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "plan EXPERIMENT [OPTION...]",
    "Prints what every device does in one step: its collectives with their groups, sizes and\n"
    "reasons, the schedule, and the buffers. Needs no machine.\n"
    "JSON holds everything; text and DOT show layers that do the same once.\n"
    "--explain tells of each collective why it is there, what would avoid it and what it costs,\n"
    "the most expensive first (docs/explain.md): as text, json or markdown. With a machine, by "
    "the\n"
    "time it takes.",
    {"shardsim plan examples/qwen3-1.7b-fsdp4.json",
     "shardsim plan examples/qwen3-1.7b-fsdp4.json --format json -o plan.json",
     "shardsim plan examples/llama-3.1-8b-8xh100.json --name tp -o plan.dot",
     "shardsim plan examples/llama-3.1-8b-8xh100.json --name tp --explain",
     "shardsim plan --program examples/programs/mlp-fsdp-tp.mlir --explain"}};

std::string render(const Plan& plan, const std::string& format) {
  if (format == "json") return plan_to_json(plan).dump(1) + "\n";
  if (format == "dot") return plan_to_dot(plan);
  return plan_to_text(plan);
}

std::string render(const Explanation& explanation, const std::string& format) {
  if (format == "json") return explain_json(explanation);
  if (format == "markdown") return explain_markdown(explanation);
  return explain_text(explanation);
}

Explanation explain(const Experiment& experiment) {
  const auto with_prices = [&](Plan& plan) {
    const std::string program = program_path(experiment);
    if (!program.empty()) try_remedies(program, plan);
  };
  if (experiment.machine.empty()) {
    CompiledStep step = compile_experiment(experiment);
    with_prices(step.plan);
    return explain(step.plan, nullptr);
  }
  Prediction prediction = predict(experiment, {});
  with_prices(prediction.step.plan);
  return explain(prediction.step.plan, &prediction.result);
}

}  // namespace

int plan_command(const Words& words) {
  boost::program_options::options_description options("Options");
  add_experiment_options(options);
  options.add_options()("explain", "why each collective is there, and what would avoid it");
  add_output_options(options, {"text", "json", "dot", "markdown"});
  const std::optional<Given> answered = parse_or_help(words, options, manual);
  if (!answered) return exit_done;
  const Given& given = *answered;
  const bool explains = given.has("explain");
  const std::vector<std::string> formats =
      explains ? std::vector<std::string>{"text", "json", "markdown"}
               : std::vector<std::string>{"text", "json", "dot"};
  const auto outputs = read_outputs(given, formats, /*text_beside_files=*/false);
  const Experiment experiment = read_given_experiment(given);
  if (explains) {
    const Explanation explanation = explain(experiment);
    write(outputs, [&](const std::string& format) { return render(explanation, format); });
    return exit_done;
  }
  const CompiledStep step = compile_experiment(experiment);
  write(outputs, [&](const std::string& format) { return render(step.plan, format); });
  return exit_done;
}

}  // namespace shardsim
