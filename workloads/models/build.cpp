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

// The operations of the loss are the last of the forward pass (GraphBuilder::cross_entropy).
TensorId add_output(Workload& workload, std::string_view name) {
  std::vector<Op>& ops = workload.blocks.back().forward;
  Op& loss = ops.back();
  const Op& log_softmax = ops[ops.size() - 2];
  assert(kind_of(loss) == OpKind::softmax_loss && kind_of(log_softmax) == OpKind::softmax_loss);
  if (name == "logits") return log_softmax.operands.front().tensor;
  if (name == "labels") return loss.operands.back().tensor;
  Tensor losses;
  losses.name = "losses";
  losses.dtype = DType::f32;
  losses.dims = loss.operands.back().dims;
  losses.block = static_cast<int>(workload.blocks.size()) - 1;
  workload.tensors.push_back(losses);
  const auto id = static_cast<TensorId>(workload.tensors.size()) - 1;
  loss.results.push_back({id, losses.dims});
  return id;
}

void add_outputs(Workload& workload, const WorkloadOptions& options) {
  const Place place{options.place.file, options.place.pointer + "/outputs"};
  if (!options.outputs.empty() && options.microbatches > 1) {
    throw InputError(place, "outputs of a step of several microbatches are not supported");
  }
  const std::vector<std::string> names = output_names();
  for (const std::string& output : options.outputs) {
    if (std::find(names.begin(), names.end(), output) == names.end()) {
      throw InputError(place, fmt::format("unknown output \"{}\"", output), closest(output, names));
    }
    if (std::count(options.outputs.begin(), options.outputs.end(), output) > 1) {
      throw InputError(place, fmt::format("\"{}\" is there twice", output));
    }
    workload.outputs.push_back(add_output(workload, output));
  }
}

}  // namespace

std::vector<std::string> output_names() { return {"logits", "labels", "losses"}; }

bool reads_tokens(const ModelConfig& config) {
  return architecture_of(JsonReader(*config.json, {config.path, ""})).has_sequence;
}

Workload build_workload(const ModelConfig& config, const WorkloadOptions& options) {
  assert(options.batch >= 1 && (!options.sequence || *options.sequence >= 1));
  const JsonReader json(*config.json, {config.path, ""});
  const Architecture& architecture = architecture_of(json);
  const auto fail = [&](const std::string& key, std::string_view message) {
    if (options.place.file.empty()) json.fail(message);
    throw InputError({options.place.file, options.place.pointer + key}, message);
  };
  if (architecture.has_sequence && !options.sequence) {
    fail("", "a sequence length is needed: this model reads tokens");
  }
  if (!architecture.has_sequence && options.sequence) {
    fail("/sequence", "a sequence length was given: this model derives it from the image");
  }
  if (options.batch % options.microbatches != 0) {
    fail("/microbatches", fmt::format("a batch of {} does not divide into {} microbatches",
                                      options.batch, options.microbatches));
  }
  WorkloadOptions part = options;
  part.batch = options.batch / options.microbatches;
  Workload workload = architecture.build(config, part);
  check_countable(workload, json.place());
  workload.microbatches = options.microbatches;
  workload.metrics = options.metrics;
  add_outputs(workload, options);
  workload.examples = options.batch;
  workload.tokens = options.sequence ? options.batch * *options.sequence : 0;
  return workload;
}

}  // namespace shardsim
