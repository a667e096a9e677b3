#include "reports/specs_report.hpp"

#include <iostream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "report_format.hpp"
#include "strategies/coverage.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "specs EXPERIMENT [OPTION...]",
    "Prints how every parameter lies on the mesh: its spec, its shard, which rule said so and why "
    "it\n"
    "is not sharded more; what the rules miss; and pictures of who holds what. Needs no machine. "
    "In\n"
    "place of a model an experiment may name a parameter tree: {\"workload\": {\"tree\": FILE}}.\n"
    "With --strict it is a check: exit 1 when a rule matches nothing, or when large parameters "
    "that\n"
    "are whole on every device come to more than --max-whole.",
    {"shardsim specs examples/rules.json",
     "shardsim specs examples/paligemma2-28b-fsdp256.json -o specs.html",
     "shardsim specs examples/gpt3-175b-pax-1536.json --picture softmax",
     "shardsim specs examples/llama-3.1-8b-8xh100.json --name fsdp+tp --format csv",
     "shardsim specs --tree examples/tiny-llama.safetensors --mesh fsdp=4 --strategy fsdp",
     "shardsim specs examples/rules.json --strict --max-whole 1GiB --allow-unused 'act_'",
     "shardsim specs --model gpt2 --batch 8 --sequence 1024 --mesh fsdp=4 --strategy fsdp"}};

SpecLimits read_limits(const Given& given) {
  SpecLimits limits;
  if (given.has("max-whole"))
    limits.max_whole = parse_bytes(given.all("max-whole").back(), {"--max-whole", ""});
  if (!given.has("allow-unused")) return limits;
  for (const std::string& expression : given.all("allow-unused"))
    limits.may_be_unused.emplace_back(expression, Place{"--allow-unused", ""});
  return limits;
}

}  // namespace

int specs_command(const Words& words) {
  boost::program_options::options_description options("Options");
  add_experiment_options(options);
  add_output_options(options, report_formats());
  options.add_options()("picture",
                        boost::program_options::value<std::string>()->value_name("REGEX"),
                        "draw the tensors whose names the expression is found in");
  options.add_options()("strict",
                        "exit with 1, and say why, when a rule matches nothing or too "
                        "much is whole everywhere");
  options.add_options()("max-whole",
                        boost::program_options::value<std::string>()->value_name("SIZE"),
                        "of parameters of 1 MiB and more that every device holds whole, in all "
                        "(256 MiB): more is a warning");
  options.add_options()(
      "allow-unused",
      boost::program_options::value<std::vector<std::string>>()->value_name("REGEX"),
      "rules in whose text this is found may match nothing; may be repeated");
  const std::optional<Given> answered = parse_or_help(words, options, manual);
  if (!answered) return exit_done;
  const Given& given = *answered;
  const auto outputs = read_outputs(given, report_formats(), /*text_beside_files=*/false);
  const Experiment experiment = read_given_experiment(given);
  SpecTable table = experiment_specs(experiment);
  if (given.has("picture")) {
    const std::string expression = given.all("picture").back();
    const std::string pictures = specs_pictures(table, Pattern(expression, {"--picture", ""}));
    if (pictures.empty())
      throw InputError({"--picture", ""}, "no parameter matches \"" + expression + "\"");
    print(pictures);
    return exit_done;
  }
  const SpecLimits limits = read_limits(given);
  const Coverage coverage = coverage_of(table);
  std::vector<std::string> problems = whole_problems(table, coverage, limits);
  table.warnings.insert(table.warnings.end(), problems.begin(), problems.end());
  for (std::string& rule : unused_rule_problems(table, coverage, limits))
    problems.push_back(std::move(rule));
  write(outputs, [&](const std::string& format) {
    return report_specs(table, *experiment.resolved, report_format(format));
  });
  if (!given.has("strict") || problems.empty()) return exit_done;
  for (const std::string& problem : problems)
    std::cerr << "shardsim: --strict: " << problem << "\n";
  return exit_verdict_is_no;
}

}  // namespace shardsim
