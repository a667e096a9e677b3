#include "experiments/read_step.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "experiments/missing_key.hpp"
#include "experiments/read_rematerialization.hpp"

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

std::vector<std::string> read_names(const JsonReader& json) {
  std::vector<std::string> names;
  for (const JsonReader& name : json.elements()) names.push_back(name.string());
  return names;
}

void read_precision(const JsonReader& json, Step& step) {
  json.only_keys(
      {"compute", "norms", "look_ups", "indices", "parameters", "gradients", "master", "moments"});
  const auto read = [&](const char* key, auto& dtype) {
    if (const auto found = json.find(key)) dtype = read_float_type(*found);
  };
  OptimizerOptions& kept = step.optimizer;
  read("compute", step.precision.compute);
  read("parameters", kept.parameters);
  read("gradients", kept.gradients);
  read("moments", kept.moments);
  read("norms", step.precision.weights.norms);
  read("look_ups", step.precision.weights.look_ups);
  if (const auto indices = json.find("indices")) {
    const bool narrow = indices->choice({"int32", "int64"}) == "int32";
    step.precision.indices = narrow ? DType::i32 : DType::i64;
  }
  if (!json.json().contains("master")) return;
  const JsonReader master = json.at("master");
  if (master.is_null() || (master.is_string() && master.string() == "none")) {
    kept.master.reset();
  } else {
    kept.master = read_float_type(master);
  }
}

StepKind read_kind(const JsonReader& json) {
  const std::string kind = json.choice({"train", "forward", "prefill", "decode"});
  if (kind == name_of(StepKind::train)) return StepKind::train;
  if (kind == name_of(StepKind::forward)) return StepKind::forward;
  json.fail(
      fmt::format("\"{}\" is not supported by this version, \"train\" and \"forward\" are", kind));
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
  if (const auto microbatches = workload.find("microbatches")) {
    step.microbatches = microbatches->integer(1, step.batch);
  }
  if (const auto metrics = workload.find("metrics")) step.metrics = read_names(*metrics);
  if (const auto outputs = workload.find("outputs")) step.outputs = read_names(*outputs);
  if (const auto precision = workload.find("precision")) read_precision(*precision, step);
  if (const auto optimizer = workload.find("optimizer")) {
    step.optimizer.kind = optimizer->choice({"adamw", "sgd"});
  }
  if (const auto donate = workload.find("donate")) step.optimizer.donate = donate->boolean();
  if (const auto policy = workload.find("rematerialization")) {
    step.rematerialization = read_rematerialization(*policy);
  }
  return step;
}

Json step_to_json(const Step& step) {
  const OptimizerOptions& kept = step.optimizer;
  const Precision& types = step.precision;
  Json json;
  json["step"] = name_of(step.kind);
  json["batch"] = step.batch;
  json["microbatches"] = step.microbatches;
  if (!step.metrics.empty()) json["metrics"] = step.metrics;
  if (!step.outputs.empty()) json["outputs"] = step.outputs;
  if (step.sequence) json["sequence"] = *step.sequence;
  json["precision"] = {{"compute", name_of(types.compute)},
                       {"parameters", name_of(kept.parameters)},
                       {"gradients", name_of(kept.gradients)},
                       {"master", kept.master ? name_of(*kept.master) : "none"},
                       {"moments", name_of(kept.moments)}};
  if (types.weights.norms) json["precision"]["norms"] = name_of(*types.weights.norms);
  if (types.weights.look_ups) json["precision"]["look_ups"] = name_of(*types.weights.look_ups);
  json["precision"]["indices"] = name_of(types.indices);
  json["optimizer"] = kept.kind;
  if (!kept.donate) json["donate"] = false;
  json["rematerialization"] = rematerialization_to_json(step.rematerialization);
  return json;
}

}  // namespace shardsim
