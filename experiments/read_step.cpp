#include "experiments/read_step.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "experiments/missing_key.hpp"
#include "experiments/read_precision.hpp"
#include "experiments/read_rematerialization.hpp"
#include "workloads/views/view.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_sequences = std::int64_t{1} << 31;
constexpr std::int64_t longest_sequence = std::int64_t{1} << 31;
constexpr std::int64_t most_tokens = std::int64_t{1} << 40;
constexpr std::int64_t most_mtp_layers = 100;
constexpr std::int64_t last_layer = 1 << 16;
constexpr std::int64_t most_block_size = std::int64_t{1} << 20;
constexpr std::int64_t highest_rank = std::int64_t{1} << 20;

std::vector<std::string> read_names(const JsonReader& json) {
  std::vector<std::string> names;
  for (const JsonReader& name : json.elements()) names.push_back(name.string());
  return names;
}

Lora read_lora(const JsonReader& json) {
  json.only_keys({"rank", "targets"});
  Lora lora;
  if (const auto rank = json.find("rank")) lora.rank = rank->integer(1, highest_rank);
  const JsonReader targets = json.at("targets");
  lora.targets = read_names(targets);
  if (lora.targets.empty()) targets.fail("names no linear layer");
  return lora;
}

// A name, or {"name": "sgd", "momentum": false}.
void read_optimizer(const JsonReader& json, OptimizerOptions& optimizer) {
  const std::vector<std::string> known = known_optimizers();
  if (!json.is_object()) {
    optimizer.kind = json.choice(known);
    return;
  }
  json.only_keys({"name", "momentum"});
  optimizer.kind = json.at("name").choice(known);
  const auto momentum = json.find("momentum");
  if (!momentum) return;
  if (optimizer.kind != "sgd") {
    momentum->fail(fmt::format("is of sgd, \"{}\" has moments of its own", optimizer.kind));
  }
  optimizer.momentum = momentum->boolean();
}

// As many tokens in each, or how many there are of each length: {"512": 3, "4096": 1}.
Documents read_documents(const JsonReader& json, const Step& step) {
  if (is_inference(step.kind)) {
    json.fail(fmt::format("is of steps without a cache, this is \"{}\"", name_of(step.kind)));
  }
  if (!step.sequence) json.fail("is of a \"sequence\" that documents are packed into");
  Documents documents;
  if (!json.is_object()) {
    documents.lengths[json.integer(1, longest_sequence)] = 1;
  } else {
    for (const auto& [length, count] : json.members()) {
      const Json number = Json::parse(length, nullptr, /*allow_exceptions=*/false);
      if (!number.is_number_integer()) count.fail("is not named by a length in tokens");
      const JsonReader key(number, count.place());
      const std::int64_t tokens = key.integer(1, longest_sequence);
      documents.lengths[tokens] = count.number();
      if (!(documents.lengths[tokens] > 0)) count.fail("must be above 0");
    }
    if (documents.lengths.empty()) json.fail("says no length");
  }
  if (documents.longest() > *step.sequence) {
    json.fail(fmt::format("a document of {} tokens does not fit into a sequence of {}",
                          documents.longest(), *step.sequence));
  }
  return documents;
}

StepKind read_kind(const JsonReader& json) {
  const std::vector<StepKind> kinds = {StepKind::train,  StepKind::forward,  StepKind::prefill,
                                       StepKind::decode, StepKind::generate, StepKind::layer};
  std::vector<std::string> names;
  for (const StepKind kind : kinds) names.emplace_back(name_of(kind));
  const auto found = std::find(names.begin(), names.end(), json.choice(names));
  return kinds[static_cast<std::size_t>(found - names.begin())];
}

// What a step with a loss leaves beside its state.
void read_reported(const JsonReader& workload, Step& step) {
  const bool has_loss = !is_inference(step.kind) && step.kind != StepKind::layer;
  const auto metrics = workload.find("metrics"), outputs = workload.find("outputs");
  for (const auto& given : {metrics, outputs}) {
    if (given && !has_loss) given->fail("is of steps with a loss: train, forward");
  }
  if (metrics) step.metrics = read_names(*metrics);
  if (outputs) step.outputs = read_names(*outputs);
}

// Of steps of inference, and of no other.
void read_cached(const JsonReader& workload, Step& step) {
  const auto of = [&](const char* key, StepKind kind) {
    auto given = workload.find(key);
    if (given && step.kind != kind) {
      given->fail(
          fmt::format("is of \"step\": \"{}\", this is \"{}\"", name_of(kind), name_of(step.kind)));
    }
    if (!given && step.kind == kind) {
      workload.fail(fmt::format("\"step\": \"{}\" needs \"{}\"", name_of(kind), key));
    }
    return given;
  };
  if (const auto context = of("context", StepKind::decode)) {
    step.context = context->integer(1, longest_sequence);
  }
  if (const auto tokens = of("generate", StepKind::generate)) {
    step.generate = tokens->integer(1, longest_sequence);
  }
  if (const auto block = workload.find("block_size")) {
    if (!is_inference(step.kind)) {
      block->fail(
          fmt::format("is of a cache's pages, \"step\": \"{}\" has no cache", name_of(step.kind)));
    }
    step.block_size = block->integer(1, most_block_size);
  }
}

// Of a layer alone. No optimizer runs unless one is named: benchmarks of layers have none.
void read_layer(const JsonReader& workload, Step& step) {
  const auto layer = workload.find("layer");
  if (step.kind == StepKind::layer) step.optimizer.kind = "none";
  if (!layer) return;
  if (step.kind != StepKind::layer) {
    layer->fail(fmt::format("is of \"step\": \"layer\", this is \"{}\"", name_of(step.kind)));
  }
  if (!layer->is_object()) {
    step.layer.number = layer->integer(0, last_layer);
    return;
  }
  layer->only_keys({"number", "backward"});
  if (const auto number = layer->find("number")) {
    step.layer.number = number->integer(0, last_layer);
  }
  if (const auto backward = layer->find("backward")) step.layer_backward = backward->boolean();
}

}  // namespace

Step read_step(const JsonReader& workload) {
  Step step;
  if (const auto kind = workload.find("step")) step.kind = read_kind(*kind);
  const auto batch = workload.find("batch");
  if (!batch) workload.fail(missing_key("batch"));
  step.batch = batch->integer(1, most_sequences);
  if (const auto sequence = workload.find("sequence")) {
    step.sequence = sequence->integer(1, longest_sequence);
    if (*step.sequence > most_tokens / step.batch) {
      workload.fail(fmt::format("{} sequences of {} tokens are more than {} tokens", step.batch,
                                *step.sequence, most_tokens));
    }
  }
  if (const auto target = workload.find("target_sequence")) {
    step.target_sequence = target->integer(1, most_tokens / step.batch);
  }
  if (const auto documents = workload.find("documents")) {
    step.documents = read_documents(*documents, step);
  }
  read_cached(workload, step);
  read_layer(workload, step);
  if (const auto layers = workload.find("mtp_layers")) {
    step.mtp_layers = layers->integer(0, most_mtp_layers);
  }
  if (const auto microbatches = workload.find("microbatches")) {
    step.microbatches = microbatches->integer(1, step.batch);
  }
  read_reported(workload, step);
  if (const auto precision = workload.find("precision")) read_precision(*precision, step);
  if (const auto optimizer = workload.find("optimizer")) {
    read_optimizer(*optimizer, step.optimizer);
  }
  if (const auto clips = workload.find("gradient_clipping")) {
    step.gradient_clipping = clips->boolean();
  }
  if (const auto donate = workload.find("donate")) step.optimizer.donate = donate->boolean();
  if (const auto policy = workload.find("rematerialization")) {
    step.rematerialization = read_rematerialization(*policy);
  }
  if (const auto trainable = workload.find("trainable")) {
    step.trainable = read_names(*trainable);
    if (step.trainable.empty()) trainable->fail("nothing is trained");
  }
  if (const auto lora = workload.find("lora")) step.lora = read_lora(*lora);
  if (const auto view = workload.find("view")) step.view = view->choice(view_names());
  if (const auto dropout = workload.find("dropout")) {
    step.dropout = dropout->number();
    if (!(*step.dropout >= 0 && *step.dropout < 1)) dropout->fail("must be from 0 to less than 1");
  }
  return step;
}

Json step_to_json(const Step& step) {
  const OptimizerOptions& kept = step.optimizer;
  Json json;
  json["step"] = name_of(step.kind);
  json["batch"] = step.batch;
  json["microbatches"] = step.microbatches;
  if (!step.metrics.empty()) json["metrics"] = step.metrics;
  if (!step.outputs.empty()) json["outputs"] = step.outputs;
  if (step.sequence) json["sequence"] = *step.sequence;
  if (step.target_sequence) json["target_sequence"] = *step.target_sequence;
  if (step.documents) {
    for (const auto& [length, count] : step.documents->lengths) {
      json["documents"][std::to_string(length)] = count;
    }
  }
  if (step.context > 0) json["context"] = step.context;
  if (step.generate > 0) json["generate"] = step.generate;
  if (step.block_size > 1) json["block_size"] = step.block_size;
  if (step.mtp_layers > 0) json["mtp_layers"] = step.mtp_layers;
  if (step.kind == StepKind::layer) {
    if (step.layer.number) json["layer"]["number"] = *step.layer.number;
    json["layer"]["backward"] = step.layer_backward;
  }
  json["precision"] = precision_to_json(step);
  json["optimizer"] = kept.kind;
  if (!kept.momentum) json["optimizer"] = {{"name", kept.kind}, {"momentum", false}};
  if (step.gradient_clipping) json["gradient_clipping"] = true;
  if (!kept.donate) json["donate"] = false;
  json["rematerialization"] = rematerialization_to_json(step.rematerialization);
  if (!step.trainable.empty()) json["trainable"] = step.trainable;
  if (step.lora) json["lora"] = {{"rank", step.lora->rank}, {"targets", step.lora->targets}};
  if (!step.view.empty()) json["view"] = step.view;
  if (step.dropout) json["dropout"] = *step.dropout;
  return json;
}

}  // namespace shardsim
