#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/json.hpp"
#include "experiments/program.hpp"
#include "plan/plan_io.hpp"
#include "plan/read_mesh.hpp"
#include "reports/specs/tree_report.hpp"

#include "command.hpp"
#include "import_launch.hpp"
#include "output.hpp"
#include "verbs.hpp"
#include "workloads/files/safetensors.hpp"
#include "workloads/files/tree_file.hpp"
#include "workloads/models/checkpoint.hpp"
#include "workloads/models/model_tree.hpp"

namespace shardsim {
namespace {

const Manual import_manual = {
    "import KIND FILE [OPTION...]",
    "Reads somebody's model or program. Of a model prints the parameter tree: every tensor's "
    "name,\n"
    "shape and element type, layers that are alike in one row; as CSV every tensor, as JSON in "
    "the\n"
    "form that other commands read (docs/parameter-trees.md). Of a program prints the plan, as the "
    "verb plan does. KIND is\n\n"
    "  safetensors  a checkpoint: a .safetensors file, its .safetensors.index.json, or the folder\n"
    "               that holds them; only headers are read\n"
    "  hf           a model's config.json, or the name of a model that is built in\n"
    "  hlo          a program compiled by XLA, as compile().as_text() and --xla_dump_to print it,\n"
    "               gzip too (docs/hlo-import.md)\n"
    "  stablehlo    a program as jax.jit(f).lower(...).as_text() prints it, gzip too: shardings "
    "are\n"
    "               propagated as Shardy does, and partitioned as XLA does\n"
    "               (docs/stablehlo-import.md)\n"
    "  megatron, torchtitan, deepspeed, maxtext, pax\n"
    "               somebody's own configuration as an experiment (docs/own-files.md): a launch\n"
    "               script or its arguments, TOML, JSON, YAML, classes of Python, with KEY=VALUE\n"
    "               behind the file for what it does not say. Each key is used, has no influence "
    "on cost, or is\n"
    "               refused; --format json lists them, -o FILE writes the experiment",
    {"shardsim import hf llama-3.1-8b -o tree.json",
     "shardsim import hf workloads/configs/vit-b16.json --format csv",
     "shardsim import safetensors examples/tiny-llama.safetensors",
     "shardsim import hlo examples/programs/fsdp-matmul.hlo --mesh x=2,y=4",
     "shardsim import stablehlo examples/programs/mlp-fsdp-tp.mlir --format json",
     "shardsim import megatron examples/launch/mixtral-8x7b-megatron.sh --machine dgx-h100",
     "shardsim import torchtitan examples/launch/llama-3.1-70b-torchtitan.toml --devices 256",
     ("shardsim import deepspeed examples/launch/zero3-deepspeed.json --model llama-3.1-8b \\\n"
      "               --devices 16 --sequence 4096 --format json"),
     ("shardsim import maxtext examples/launch/llama-2-7b-maxtext.yml --devices 256 \\\n"
      "               per_device_batch_size=4 --machine tpu-v5e"),
     "shardsim import pax examples/launch/lm-cloud-64b-pax.sh --machine tpu-v4"}};

const std::vector<std::string> tree_formats = {"text", "json", "csv"};
const std::vector<std::string> plan_formats = {"text", "json", "dot"};

ParameterTree import_safetensors(const std::string& path) {
  if (is_safetensors(path)) return read_tree_file(path);
  const Json document = load_json(path);
  if (!is_safetensors_index(document)) {
    throw InputError({path, ""}, "is neither a safetensors file nor the index of one");
  }
  return read_safetensors_index(JsonReader(document, {path, ""}), path);
}

ParameterTree import_config(const std::string& name) {
  return model_tree(load_model_config(name, "", {"command line", ""}));
}

struct Kind {
  const char* name;
  ParameterTree (*import)(const std::string& path);
};

constexpr std::array kinds{Kind{"safetensors", import_safetensors}, Kind{"hf", import_config}};

bool is_like_xla(const Given& given) {
  for (const std::string& who : given.all("like")) {
    if (who != "xla") throw UsageError(fmt::format("--like {}: known is xla", who));
  }
  return given.has("like");
}

// A file of the other kind is told by its name: the readers would only say where they stop.
Plan import_program(const std::string& kind, const std::string& path, const Given& given) {
  const Words meshes = given.all("mesh");
  const Words buffers = given.all("buffers");
  if (meshes.size() > 1) throw UsageError("--mesh is given twice");
  if (buffers.size() > 1) throw UsageError("--buffers is given twice");
  ProgramOptions options;
  options.like_xla = is_like_xla(given);
  if (options.like_xla && kind == "hlo") throw UsageError("--like is for StableHLO");
  if (!buffers.empty() && kind != "hlo") throw UsageError("--buffers is for HLO");
  if (!buffers.empty()) options.buffers = buffers[0];
  if (!meshes.empty()) {
    const Json text = meshes[0];
    options.mesh = read_mesh(JsonReader(text, {"command line", "--mesh"}));
  }
  const std::string text = read_maybe_gzip(path);  // once: it may be a pipe
  const bool hlo = is_hlo(text);
  if (hlo && kind == "stablehlo") throw InputError({path, ""}, "this is compiled HLO: import hlo");
  if (!hlo && kind == "hlo") {
    throw InputError({path, ""},
                     "expected \"HloModule\": this is no HLO text (StableHLO: import stablehlo)");
  }
  return program_plan(text, path, options);
}

std::string plan_in(const Plan& plan, const Output& output) {
  if (output.format == "json") return plan_to_json(plan).dump(1) + "\n";
  return output.format == "dot" ? plan_to_dot(plan) : plan_to_text(plan, output.width);
}

Words kind_names() {
  Words names;
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  names.insert(names.end(), {"hlo", "stablehlo"});
  for (const std::string& launched : launch_kinds()) names.push_back(launched);
  return names;
}

ParameterTree import_given(const Words& operands) {
  for (const Kind& kind : kinds) {
    if (!operands.empty() && operands[0] == kind.name) {
      if (operands.size() == 2) return kind.import(operands[1]);
      throw UsageError(fmt::format("expected: import {} FILE", kind.name));
    }
  }
  const Words names = kind_names();
  if (operands.empty()) {
    throw UsageError(
        fmt::format("expected: import KIND FILE; kinds are {}", fmt::join(names, ", ")));
  }
  throw UsageError(fmt::format("import: unknown kind \"{}\"; kinds are {}", operands[0],
                               fmt::join(names, ", ")));
}

// --model: the file is a checkpoint of it, tensor by tensor.
void check_model(const Given& given, const Words& operands, const ParameterTree& tree) {
  const Words models = given.all("model");
  if (models.empty()) return;
  if (models.size() > 1) throw UsageError("--model is given twice");
  if (operands[0] != "safetensors") throw UsageError("--model is for safetensors");
  require_checkpoint_of(tree, load_model_config(models[0], "", {"command line", ""}));
}

void add_import_options(po::options_description& options) {
  add_output_options(options, {"text", "json", "csv (of a model)", "dot (of a program)"});
  options.add_options()("mesh", po::value<std::string>()->value_name("MESH"),
                        "axes and sizes to tell the groups of a program by, or that DeepSpeed runs "
                        "on: data=2,fsdp=4");
  options.add_options()("like", po::value<std::string>()->value_name("xla"),
                        "of StableHLO: reshard as XLA does, even where other ways send less")(
      "buffers", po::value<std::string>()->value_name("FILE"),
      "of HLO: *-buffer-assignment.txt of --xla_dump_to: what the program holds between arguments "
      "and results, instead of an estimate")(
      "model", po::value<std::string>()->value_name("CONFIG"),
      "of safetensors: that the file holds this model's tensors and no others, under the names "
      "that files on the hub have or under those of transformers' modules; of somebody's own "
      "configuration: the model, in place of the file's");
  add_launch_options(options);
}

int run_import(const Given& given) {
  const Words operands = given.all("operand");
  if (!operands.empty() && is_launch_kind(operands[0])) return run_import_launch(given);
  if (const std::string option = given_launch_option(given); !option.empty()) {
    throw UsageError(fmt::format("--{} is for {}", option, fmt::join(launch_kinds(), ", ")));
  }
  if (!operands.empty() && (operands[0] == "hlo" || operands[0] == "stablehlo")) {
    if (given.has("model")) throw UsageError("--model is for safetensors");
    if (operands.size() != 2) {
      throw UsageError(fmt::format("expected: import {} FILE", operands[0]));
    }
    const auto outputs = read_outputs(given, plan_formats);
    const Plan plan = import_program(operands[0], operands[1], given);
    write(outputs, [&](const Output& output) { return plan_in(plan, output); });
    return exit_done;
  }
  for (const char* option : {"mesh", "like", "buffers"}) {
    if (given.has(option)) throw UsageError(fmt::format("--{} is for programs", option));
  }
  const auto outputs = read_outputs(given, tree_formats);
  const ParameterTree tree = import_given(operands);
  check_model(given, operands, tree);
  write(outputs, [&](const Output& output) {
    if (output.format == "json") return parameter_tree_to_json(tree).dump(1) + "\n";
    return output.format == "csv" ? tree_csv(tree) : tree_text(tree, output.width);
  });
  return exit_done;
}

}  // namespace

Verb import_verb() {
  return {
      .name = "import",
      .summary = "somebody's model as a parameter tree, program as a plan, launch as an experiment",
      .manual = import_manual,
      .add_options = add_import_options,
      .run = run_import,
      .actions = kind_names()};
}

}  // namespace shardsim
