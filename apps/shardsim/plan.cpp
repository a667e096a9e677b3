#include "plan/plan_io.hpp"

#include "base/json.hpp"
#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "plan EXPERIMENT [OPTION...]",
    "Prints what every device does in one step: its collectives with their groups, sizes and\n"
    "reasons, the schedule, and the buffers. Needs no machine.\n"
    "JSON holds everything; text and DOT show layers that do the same once.",
    {"shardsim plan examples/qwen3-1.7b-fsdp4.json",
     "shardsim plan examples/qwen3-1.7b-fsdp4.json --format json -o plan.json",
     "shardsim plan examples/llama-3.1-8b-8xh100.json --name tp -o plan.dot"}};

std::string render(const Plan& plan, const std::string& format) {
  if (format == "json") return plan_to_json(plan).dump(1) + "\n";
  if (format == "dot") return plan_to_dot(plan);
  return plan_to_text(plan);
}

}  // namespace

int plan_command(const Words& words) {
  const std::vector<std::string> formats = {"text", "json", "dot"};
  boost::program_options::options_description options("Options");
  add_experiment_options(options);
  add_output_options(options, formats);
  const std::optional<Given> answered = parse_or_help(words, options, manual);
  if (!answered) return exit_done;
  const Given& given = *answered;
  const auto outputs = read_outputs(given, formats, /*text_beside_files=*/false);
  const CompiledStep step = compile_experiment(read_given_experiment(given));
  write(outputs, [&](const std::string& format) { return render(step.plan, format); });
  return exit_done;
}

}  // namespace shardsim
