#include "workloads/models/build.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "base/json.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/gpt2.hpp"
#include "workloads/models/llama.hpp"
#include "workloads/models/mlp.hpp"
#include "workloads/models/vit.hpp"

namespace shardsim {
namespace {

struct Architecture {
  std::string name;        // Hugging Face: an entry of "architectures"
  std::string model_type;  // and its "model_type"; ours: only this
  bool has_sequence = true;
  Workload (*build)(const ModelConfig&, const WorkloadOptions&) = nullptr;
};

const std::vector<Architecture> architectures = {
    {"LlamaForCausalLM", "llama", true, build_llama},
    {"Qwen3ForCausalLM", "qwen3", true, build_qwen3},
    {"GPT2LMHeadModel", "gpt2", true, build_gpt2},
    {"", "big_vision_vit", false, build_vit},
    {"", "mlp_classifier", false, build_mlp},
};

[[noreturn]] void fail_unsupported(const JsonReader& value) {
  std::vector<std::string> names;
  for (const Architecture& a : architectures) {
    names.push_back(a.name.empty() ? a.model_type : a.name);
  }
  const std::string name = value.string();
  const std::vector<models::Family>& known = models::families();
  const bool is_known = std::any_of(known.begin(), known.end(), [&](const models::Family& family) {
    return family.architecture == name || family.model_type == name;
  });
  value.fail(fmt::format("unsupported architecture \"{}\"{}; supported are {}", name,
                         is_known ? ": \"shardsim model\" says what it is made of, steps of it "
                                    "cannot be built yet"
                                  : "",
                         fmt::join(names, ", ")));
}

const Architecture& architecture_of(const JsonReader& config) {
  if (const auto list = config.find("architectures")) {
    const std::vector<JsonReader> entries = list->elements();
    if (entries.empty()) list->fail("is empty");
    for (const Architecture& a : architectures) {
      if (!a.name.empty() && a.name == entries[0].string()) return a;
    }
    fail_unsupported(entries[0]);
  }
  if (!config.find("model_type")) {
    config.fail("says neither \"architectures\" nor \"model_type\": not a model's description");
  }
  const JsonReader type = config.at("model_type");
  for (const Architecture& a : architectures) {
    if (a.model_type == type.string()) return a;
  }
  fail_unsupported(type);
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

bool reads_tokens(const ModelConfig& config) {
  return architecture_of(JsonReader(*config.json, {config.path, ""})).has_sequence;
}

void check_entering(const ModelConfig& config, const WorkloadOptions& options) {
  assert(options.batch >= 1 && (!options.sequence || *options.sequence >= 1));
  const JsonReader json(*config.json, {config.path, ""});
  const auto fail = [&](const std::string& key, std::string_view message) {
    if (options.place.file.empty()) json.fail(message);
    throw InputError({options.place.file, options.place.pointer + key}, message);
  };
  const bool has_sequence = architecture_of(json).has_sequence;
  if (has_sequence && !options.sequence) {
    fail("", "a sequence length is needed: this model reads tokens");
  }
  if (!has_sequence && options.sequence) {
    fail("/sequence", "a sequence length was given: this model derives it from the image");
  }
}

Workload build_workload(const ModelConfig& config, const WorkloadOptions& options) {
  check_entering(config, options);
  const JsonReader json(*config.json, {config.path, ""});
  Workload workload = architecture_of(json).build(config, options);
  check_countable(workload, json.place());
  workload.tokens = options.sequence ? options.batch * *options.sequence : 0;
  return workload;
}

}  // namespace shardsim
