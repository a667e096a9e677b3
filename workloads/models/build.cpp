#include "workloads/models/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "base/json.hpp"
#include "workloads/models/described_model.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/graph/model_graph.hpp"
#include "workloads/models/mlp.hpp"
#include "workloads/models/vit.hpp"

namespace shardsim {
namespace {

struct Program {
  std::string_view model_type;
  Workload (*build)(const ModelConfig&, const WorkloadOptions&) = nullptr;
};

// Of our own descriptions, which nothing but "model_type" names.
constexpr std::array programs{Program{"big_vision_vit", build_vit},
                              Program{"mlp_classifier", build_mlp}};

// Nothing where a family describes the model.
const Program* program_of(const JsonReader& config) {
  if (config.find("architectures") || !config.find("model_type")) return nullptr;
  const std::string type = config.at("model_type").string();
  const auto* found = std::find_if(programs.begin(), programs.end(), [&](const Program& program) {
    return program.model_type == type;
  });
  return found == programs.end() ? nullptr : found;
}

// Sizes are products of numbers from the description: the largest must be countable, with room for
// sums over tensors and layers.
void check_countable(const Workload& workload, const Place& place) {
  constexpr double limit = static_cast<double>(std::numeric_limits<std::int64_t>::max()) / 1024;
  double total = 0;
  for (const Tensor& tensor : workload.tensors) {
    double bytes = static_cast<double>(size_of(tensor.dtype).count());
    for (const Dim& dim : tensor.dims) {
      for (const LabelId label : dim) {
        bytes *= static_cast<double>(workload.labels[static_cast<std::size_t>(label)].size);
      }
    }
    total += bytes * static_cast<double>(
                         workload.blocks[static_cast<std::size_t>(tensor.block)].instances());
  }
  if (total > limit) {
    throw InputError(
        place,
        fmt::format("the step's tensors take {:.3g} bytes, more than can be counted", total));
  }
}

}  // namespace

bool is_described(const ModelConfig& config) {
  const JsonReader json(*config.json, {config.path, ""});
  if (program_of(json) != nullptr) return false;
  static_cast<void>(models::family_of(json));
  return true;
}

std::string family_name(const ModelConfig& config) {
  const JsonReader json(*config.json, {config.path, ""});
  if (const Program* program = program_of(json)) return std::string(program->model_type);
  return std::string(models::family_of(json).model_type);
}

// Our own programs read images and rows of numbers.
bool reads_tokens(const ModelConfig& config) {
  return is_described(config) && models::reads_tokens(read_described(config).spec);
}

bool has_encoder(const ModelConfig& config) {
  return is_described(config) && models::has_encoder(read_described(config).spec);
}

std::int64_t prompt_tokens(const ModelConfig& config, std::int64_t sequence,
                           std::optional<std::int64_t> target) {
  if (!is_described(config)) return sequence;
  const models::ModelSpec spec = read_described(config).spec;
  if (!models::has_encoder(spec)) return sequence;
  return target.value_or(models::encodes_tokens(spec) ? 1 : sequence);
}

void check_entering(const ModelConfig& config, const WorkloadOptions& options) {
  assert(options.batch >= 1 && (!options.sequence || *options.sequence >= 1));
  const JsonReader json(*config.json, {config.path, ""});
  const bool described = is_described(config);
  const auto fail = [&](const std::string& key, std::string_view message) {
    if (options.place.file.empty()) json.fail(message);
    throw InputError({options.place.file, options.place.pointer + key}, message);
  };
  bool tokens = false;
  bool has_encoder = false;
  bool samples = false;
  bool generates = false;
  if (described) {
    const models::ModelSpec spec = read_described(config).spec;
    generates = !spec.network && spec.head.kind == models::HeadKind::language;
    tokens = models::reads_tokens(spec);
    has_encoder = models::has_encoder(spec);
    samples = spec.network &&
              (models::reads_samples(*spec.network) || models::reads_words(*spec.network));
  }
  if (options.cache && !generates) {
    fail("/step",
         fmt::format("{} makes no tokens: \"forward\" is its step of inference", config.name));
  }
  if (tokens && !options.sequence) {
    fail("", "a sequence length is needed: this model reads tokens");
  }
  if (options.target && (!tokens || !has_encoder)) {
    fail("/target_sequence", "is of models with an encoder and a decoder");
  }
  if (options.documents && (!tokens || has_encoder)) {
    fail("/documents", "are packed into sequences of models that read one sequence of tokens");
  }
  if (options.one_layer && !described) {
    fail("/step", "\"layer\" is of models that are made of layers, by their config.json");
  }
  if (!tokens && !samples && options.sequence) {
    fail("/sequence", "a sequence length was given: this model derives it from the image");
  }
}

Workload build_workload(const ModelConfig& config, const WorkloadOptions& options) {
  check_entering(config, options);
  const JsonReader json(*config.json, {config.path, ""});
  const Program* program = program_of(json);
  Workload workload =
      program != nullptr ? program->build(config, options) : build_described(config, options);
  check_countable(workload, json.place());
  return workload;
}

}  // namespace shardsim
