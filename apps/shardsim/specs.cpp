#include "reports/specs_report.hpp"

#include "base/json.hpp"
#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "report_format.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "specs EXPERIMENT [OPTION...]",
    "Prints how every parameter lies on the mesh: its spec, its shard, which rule said so and why "
    "it\n"
    "is not sharded more; what the rules miss; and pictures of who holds what. Needs no machine. "
    "In\n"
    "place of a model an experiment may name a parameter tree: {\"workload\": {\"tree\": FILE}}.",
    {"shardsim specs examples/rules.json",
     "shardsim specs examples/paligemma2-28b-fsdp256.json -o specs.html",
     "shardsim specs examples/gpt3-175b-pax-1536.json --picture softmax",
     "shardsim specs examples/llama-3.1-8b-8xh100.json --name fsdp+tp --format csv",
     "shardsim specs --tree examples/tiny-llama.safetensors --mesh fsdp=4 --strategy fsdp",
     "shardsim specs --model gpt2 --batch 8 --sequence 1024 --mesh fsdp=4 --strategy fsdp"}};

}  // namespace

int specs_command(const Words& words) {
  boost::program_options::options_description options("Options");
  add_experiment_options(options);
  add_output_options(options, report_formats());
  options.add_options()("picture",
                        boost::program_options::value<std::string>()->value_name("REGEX"),
                        "draw the tensors whose names the expression is found in");
  const std::optional<Given> answered = parse_or_help(words, options, manual);
  if (!answered) return exit_done;
  const Given& given = *answered;
  const auto outputs = read_outputs(given, report_formats(), /*text_beside_files=*/false);
  const Experiment experiment = read_given_experiment(given);
  const SpecTable table = experiment_specs(experiment);
  if (given.has("picture")) {
    const std::string expression = given.all("picture").back();
    const std::string pictures = specs_pictures(table, Pattern(expression, {"--picture", ""}));
    if (pictures.empty())
      throw InputError({"--picture", ""}, "no parameter matches \"" + expression + "\"");
    print(pictures);
    return exit_done;
  }
  write(outputs, [&](const Output& output) {
    return report_specs(table, *experiment.resolved, report_format(output.format), output.width);
  });
  return exit_done;
}

}  // namespace shardsim
