#include "reports/specs/specs_report.hpp"

#include <fmt/format.h>

#include <iostream>
#include <sstream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "report_format.hpp"
#include "strategies/specs/coverage.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual specs_manual = {
    "specs EXPERIMENT [OPTION...]",
    "Prints how every parameter lies on the mesh: its spec, its shard, which rule said so and why "
    "it\n"
    "is not sharded more; what the rules miss; and pictures of who holds what. Needs no machine. "
    "In\n"
    "place of a model an experiment may name a parameter tree: {\"workload\": {\"tree\": FILE}}.\n"
    "With --strict it is a check: exit 1 when a rule matches nothing, or when large parameters "
    "that\n"
    "are whole on every device come to more than --max-whole. --picture and --submesh print text "
    "in\n"
    "place of the tables.",
    {"shardsim specs examples/rules.json",
     "shardsim specs examples/paligemma2-28b-fsdp256.json -o specs.html",
     "shardsim specs examples/gpt3-175b-pax-1536.json --picture softmax",
     "shardsim specs examples/llama-3.1-8b-8xh100.json --name fsdp+tp --format csv",
     "shardsim specs --tree examples/tiny-llama.safetensors --mesh fsdp=4 --strategy fsdp",
     "shardsim specs examples/rules.json --picture lm_head --submesh model,data",
     ("shardsim specs examples/llama-3-8b-easydel.json --name 'May 2025' --train-state adam "
      "--analyze"),
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

std::string pictures(const SpecTable& table, const Given& given) {
  std::string out;
  if (given.has("picture")) {
    const std::string expression = given.all("picture").back();
    out = specs_pictures(table, Pattern(expression, {"--picture", ""}));
    if (out.empty())
      throw InputError({"--picture", ""}, "no parameter matches \"" + expression + "\"");
  }
  if (!given.has("submesh")) return out;
  AxisNames axes;
  std::istringstream words(given.all("submesh").back());
  for (std::string axis; std::getline(words, axis, ',');) axes.push_back(axis);
  return out + (out.empty() ? "" : "\n") + submesh_picture(table, axes, {"--submesh", ""});
}

void require_text(const std::vector<Output>& outputs, const Given& given) {
  for (const Output& output : outputs) {
    if (output.format == "text") continue;
    throw UsageError(fmt::format("--{} is text: {}", given.has("picture") ? "picture" : "submesh",
                                 output.path.empty() ? "leave out --format " + output.format
                                                     : "give -o " + output.path + " another run"));
  }
}

void add_specs_options(po::options_description& options) {
  add_experiment_options(options);
  add_output_options(options, report_formats());
  options.add_options()("picture", po::value<std::string>()->value_name("REGEX"),
                        "draw the tensors whose names the expression is found in");
  options.add_options()("strict",
                        "exit with 1, and say why, when a rule matches nothing or too "
                        "much is whole everywhere");
  options.add_options()("max-whole", po::value<std::string>()->value_name("SIZE"),
                        "of parameters of 1 MiB and more that every device holds whole, in all "
                        "(256 MiB, and any size where the strategy is to replicate): more is a "
                        "warning");
  options.add_options()("allow-unused", po::value<std::vector<std::string>>()->value_name("REGEX"),
                        "rules in whose text this is found may match nothing; may be repeated");
  options.add_options()("submesh", po::value<std::string>()->value_name("AXES"),
                        "print each device's index along these axes, the first most major, as "
                        "eformer's get_submesh_device_index counts: tp,dp");
  options.add_options()("train-state", po::value<std::string>()->value_name("OPTIMIZER"),
                        "the whole train state: moments, count, step, random key; adam, adamw, "
                        "lion, momentum, sgd, or a chain as in optax: "
                        "'chain(clip_by_global_norm, adamw(schedule))'");
  options.add_options()("analyze",
                        "what eformer's analyze_sharding_strategy answers, and what it promises");
}

int run_specs(const Given& given) {
  const auto outputs = read_outputs(given, report_formats());
  const bool draws = given.has("picture") || given.has("submesh");
  if (draws) require_text(outputs, given);
  const Experiment experiment = read_given_experiment(given);
  std::optional<StateOptimizer> state;
  if (given.has("train-state"))
    state = parse_state_optimizer(given.all("train-state").back(), {"--train-state", ""});
  SpecTable table = experiment_specs(experiment, state);
  const SpecLimits limits = read_limits(given);
  const Coverage coverage = coverage_of(table);
  std::vector<std::string> problems = whole_problems(table, coverage, limits);
  table.warnings.insert(table.warnings.end(), problems.begin(), problems.end());
  for (std::string& rule : unused_rule_problems(table, coverage, limits))
    problems.push_back(std::move(rule));
  write(outputs, [&](const Output& output) {
    if (draws) return pictures(table, given);
    return report_specs(table, *experiment.resolved, report_format(output.format),
                        {.analyze = given.has("analyze"), .width = output.width});
  });
  if (!given.has("strict") || problems.empty()) return exit_done;
  for (const std::string& problem : problems)
    std::cerr << "shardsim: --strict: " << problem << "\n";
  return exit_verdict_is_no;
}

}  // namespace

Verb specs_verb() {
  return {"specs", "the sharding of every parameter", specs_manual, add_specs_options, run_specs};
}

}  // namespace shardsim
