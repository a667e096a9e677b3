#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "base/json.hpp"
#include "command.hpp"
#include "experiments/experiment.hpp"
#include "output.hpp"
#include "report_format.hpp"
#include "reports/model/model_report.hpp"
#include "verbs.hpp"
#include "workloads/models/build.hpp"
#include "workloads/models/config_keys.hpp"
#include "workloads/models/described_model.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/program_counts.hpp"

namespace shardsim {
namespace {

const Manual model_manual = {
    "model CONFIG | model list [OPTION...]",
    "What a model is made of, from its config.json or the name of a shipped one: every parameter,\n"
    "FLOPs of a step by what does them, the activations that eager PyTorch keeps, KV cache, layer\n"
    "by layer. `list` shows the families that are known. Nothing is run and no weights are read.",
    {"shardsim model llama-3.1-8b", "shardsim model gpt2 --batch 8 --sequence 1024 --format json",
     "shardsim model qwen3-1.7b --sequence 8192 -o qwen3.html", "shardsim model list"}};

// At which the records of released models are counted (tests/golden/models/README.md).
constexpr std::int64_t usual_sequence = 4096;

constexpr std::array model_flags{
    Flag{"batch", "batch", "N", "sequences or images of the step (1)"},
    Flag{"sequence", "sequence", "N",
         "tokens of each (4096, or as many as the model has positions for), or of the text beside "
         "an image (77, Stable Diffusion 3: 333, FLUX: 512)"},
    Flag{"image", "image", "N",
         "side of the images, in pixels or latents, of models that take any (the configuration's)"},
};

void add_model_options(po::options_description& options) {
  add_flags(options, model_flags);
  add_output_options(options, report_formats());
}

std::optional<std::int64_t> asked(const Given& given, const char* flag) {
  const Words values = given.all(flag);
  if (values.size() > 1) throw UsageError(fmt::format("--{} is given twice", flag));
  if (values.empty()) return std::nullopt;
  Json document = Json::object();
  apply_override(document, flag, values[0]);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return JsonReader(document, {"command line", ""}).at(flag).integer(1, most);
}

// Of an error in a configuration that is shipped or lies in a file.
Place place_of(const ModelConfig& config) { return {config.path, ""}; }

void list_families(const std::vector<Output>& outputs) {
  std::vector<KnownFamily> known;
  for (const models::Family& family : models::families()) {
    known.push_back({std::string(family.model_type), std::string(family.architecture)});
  }
  std::sort(known.begin(), known.end(),
            [](const KnownFamily& a, const KnownFamily& b) { return a.model_type < b.model_type; });
  write(outputs, [&](const Output& output) {
    if (output.format != "text" && output.format != "json") {
      throw UsageError("model list has no format " + output.format);
    }
    return report_families(known, shipped_models(), output.format == "json", output.width);
  });
}

// The step that is asked for, or a usual one.
models::Point point_of(const Given& given, const models::ModelSpec& spec) {
  const Place place{"command line", ""};
  models::Point point{.batch = asked(given, "batch").value_or(1), .image = asked(given, "image")};
  if (point.image && !spec.network) {
    throw InputError(
        place, fmt::format("{} takes no images of any size: --image is for others", spec.name));
  }
  const std::int64_t most = models::most_positions(spec);
  const std::int64_t usual = spec.network ? usual_text(*spec.network) : usual_sequence;
  point.sequence = asked(given, "sequence").value_or(std::min(usual, most));
  if (usual == 0 && point.sequence > 0) {
    throw InputError(place, fmt::format("{} reads no tokens: --sequence is for others", spec.name));
  }
  if (point.sequence > most) {
    throw InputError(place, fmt::format("a sequence of {} is longer than the {} positions that {} "
                                        "has a table for",
                                        point.sequence, most, spec.name));
  }
  return point;
}

ModelReport describe(const Given& given, const ModelConfig& config) {
  const JsonReader reader(*config.json, place_of(config));
  ModelReport report;
  report.spec = read_known_model(reader, config.name);
  report.point = point_of(given, report.spec);
  report.counts = models::count(report.spec, report.point, reader.place());
  return report;
}

// One of our own descriptions, whose step is as its file says but for the batch.
ModelReport describe_program(const Given& given, const ModelConfig& config) {
  for (const char* flag : {"sequence", "image"}) {
    if (!given.has(flag)) continue;
    throw InputError({"command line", ""}, fmt::format("{} has its sizes in its file: --{} is for "
                                                       "others",
                                                       config.name, flag));
  }
  ModelReport report;
  report.spec.name = config.name;
  report.spec.architecture = report.spec.family = family_name(config);
  report.spec.head.kind = models::HeadKind::none;
  report.point.batch = asked(given, "batch").value_or(1);
  report.point.sequence = 0;
  report.counts = models::count_program(config, report.point.batch);
  return report;
}

int run_model(const Given& given) {
  const auto outputs = read_outputs(given, report_formats());
  const Words operands = given.all("operand");
  if (operands.size() != 1) throw UsageError("expected: model CONFIG, or model list");
  if (operands[0] == "list") {
    for (const Flag& flag : model_flags) {
      if (given.has(flag.name)) throw UsageError(fmt::format("--{} is for a model", flag.name));
    }
    list_families(outputs);
    return exit_done;
  }
  const Place place{"command line", ""};
  const ModelConfig config = load_model_config(operands[0], {}, place);
  const ModelReport report =
      is_described(config) ? describe(given, config) : describe_program(given, config);
  write(outputs, [&](const Output& output) {
    return report_model(report, report_format(output.format), output.width);
  });
  return exit_done;
}

}  // namespace

Verb model_verb() {
  return {.name = "model",
          .summary = "what a model is made of: parameters, FLOPs, activations, cache",
          .manual = model_manual,
          .add_options = add_model_options,
          .run = run_model,
          .actions = {"list"}};
}

}  // namespace shardsim
