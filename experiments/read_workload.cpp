#include "experiments/read_workload.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "experiments/missing_key.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_sequences = std::int64_t{1} << 31;
constexpr std::int64_t longest_sequence = std::int64_t{1} << 31;
constexpr std::int64_t most_tokens = std::int64_t{1} << 40;

DType read_float_type(const JsonReader& json) {
  const auto dtype = parse_dtype(json.string());
  const std::vector<DType> floats = {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8};
  if (dtype && std::find(floats.begin(), floats.end(), *dtype) != floats.end()) return *dtype;
  json.fail(fmt::format("\"{}\" is no floating-point type; known are fp64, fp32, bf16, fp16, fp8",
                        json.string()));
}

void read_precision(const JsonReader& json, Experiment& experiment) {
  json.only_keys(
      {"compute", "norms", "look_ups", "indices", "parameters", "gradients", "master", "moments"});
  const auto read = [&](const char* key, DType& dtype) {
    if (const auto found = json.find(key)) dtype = read_float_type(*found);
  };
  read("compute", experiment.workload.compute_dtype);
  read("parameters", experiment.optimizer.parameters);
  read("gradients", experiment.optimizer.gradients);
  read("moments", experiment.optimizer.moments);
  WeightTypes& weights = experiment.workload.weights;
  if (const auto norms = json.find("norms")) weights.norms = read_float_type(*norms);
  if (const auto look_ups = json.find("look_ups")) weights.look_ups = read_float_type(*look_ups);
  if (const auto indices = json.find("indices")) {
    const bool narrow = indices->choice({"int32", "int64"}) == "int32";
    experiment.workload.index_dtype = narrow ? DType::i32 : DType::i64;
  }
  if (!json.json().contains("master")) return;
  const JsonReader master = json.at("master");
  if (master.is_null() || (master.is_string() && master.string() == "none")) {
    experiment.optimizer.master.reset();
  } else {
    experiment.optimizer.master = read_float_type(master);
  }
}

Rematerialization read_rematerialization(const JsonReader& json) {
  using Policy = Rematerialization::Policy;
  if (json.is_string()) {
    const std::string policy = json.choice({"none", "full", "selective"});
    if (policy == "full") return {Policy::full, {}};
    return {policy == "selective" ? Policy::selective : Policy::none, {}};
  }
  json.only_keys({"save"});
  Rematerialization result{Policy::named, {}};
  for (const JsonReader& pattern : json.at("save").elements()) {
    result.save.push_back(pattern.string());
  }
  return result;
}

void read_step(const JsonReader& json, Experiment& experiment) {
  experiment.step = json.choice({"train", "forward", "prefill", "decode"});
  if (experiment.step != "train" && experiment.step != "forward") {
    json.fail(fmt::format("\"{}\" is not supported by this version, \"train\" and \"forward\" are",
                          experiment.step));
  }
}

JsonReader required(const JsonReader& json, const std::string& key) {
  const auto found = json.find(key);
  if (!found) json.fail(missing_key(key));
  return *found;
}

Json rematerialization_to_json(const Rematerialization& rematerialization) {
  using Policy = Rematerialization::Policy;
  switch (rematerialization.policy) {
    case Policy::none:
      return "none";
    case Policy::full:
      return "full";
    case Policy::selective:
      return "selective";
    case Policy::named:
      break;
  }
  return {{"save", rematerialization.save}};
}

}  // namespace

void read_workload(const JsonReader& json, Experiment& experiment) {
  json.only_keys({"model", "tree", "step", "batch", "microbatches", "sequence", "metrics",
                  "outputs", "precision", "optimizer", "donate", "rematerialization"});
  if (const auto tree = json.find("tree")) {
    json.only_keys({"tree"});
    *experiment.tree = tree->json();
    experiment.model_place = tree->place();
    return;
  }
  experiment.model = required(json, "model").string();
  experiment.model_place = json.at("model").place();
  experiment.workload.place = json.place();
  if (const auto step = json.find("step")) read_step(*step, experiment);
  experiment.workload.batch = required(json, "batch").integer(1, most_sequences);
  if (const auto sequence = json.find("sequence")) {
    experiment.workload.sequence = sequence->integer(1, longest_sequence);
    if (*experiment.workload.sequence > most_tokens / experiment.workload.batch) {
      json.fail(fmt::format("{} sequences of {} tokens are more than {} tokens",
                            experiment.workload.batch, *experiment.workload.sequence, most_tokens));
    }
  }
  if (const auto microbatches = json.find("microbatches")) {
    experiment.workload.microbatches = microbatches->integer(1, experiment.workload.batch);
  }
  if (const auto metrics = json.find("metrics")) {
    for (const JsonReader& metric : metrics->elements()) {
      experiment.workload.metrics.push_back(metric.string());
    }
  }
  if (const auto outputs = json.find("outputs")) {
    for (const JsonReader& output : outputs->elements()) {
      experiment.workload.outputs.push_back(output.string());
    }
  }
  if (const auto precision = json.find("precision")) read_precision(*precision, experiment);
  if (const auto optimizer = json.find("optimizer")) {
    experiment.optimizer.kind = optimizer->choice({"adamw", "sgd"});
  }
  if (const auto donate = json.find("donate")) experiment.optimizer.donate = donate->boolean();
  if (const auto policy = json.find("rematerialization")) {
    experiment.rematerialization = read_rematerialization(*policy);
  }
}

Json workload_to_json(const Experiment& experiment) {
  const OptimizerOptions& optimizer = experiment.optimizer;
  Json workload;
  if (!experiment.tree.is_null()) return {{"tree", *experiment.tree}};
  workload["model"] = experiment.model;
  workload["step"] = experiment.step;
  workload["batch"] = experiment.workload.batch;
  workload["microbatches"] = experiment.workload.microbatches;
  if (!experiment.workload.metrics.empty()) workload["metrics"] = experiment.workload.metrics;
  if (!experiment.workload.outputs.empty()) workload["outputs"] = experiment.workload.outputs;
  if (experiment.workload.sequence) workload["sequence"] = *experiment.workload.sequence;
  workload["precision"] = {{"compute", name_of(experiment.workload.compute_dtype)},
                           {"parameters", name_of(optimizer.parameters)},
                           {"gradients", name_of(optimizer.gradients)},
                           {"master", optimizer.master ? name_of(*optimizer.master) : "none"},
                           {"moments", name_of(optimizer.moments)}};
  const WeightTypes& weights = experiment.workload.weights;
  if (weights.norms) workload["precision"]["norms"] = name_of(*weights.norms);
  if (weights.look_ups) workload["precision"]["look_ups"] = name_of(*weights.look_ups);
  workload["precision"]["indices"] = name_of(experiment.workload.index_dtype);
  workload["optimizer"] = optimizer.kind;
  if (!optimizer.donate) workload["donate"] = false;
  workload["rematerialization"] = rematerialization_to_json(experiment.rematerialization);
  return workload;
}

}  // namespace shardsim
