#include "strategies/offload_keys.hpp"

#include "base/json.hpp"
#include "workloads/step/saved_names.hpp"

namespace shardsim {
namespace {

ActivationsOnHost read_activations_on_host(const JsonReader& json) {
  ActivationsOnHost rule;
  if (!json.is_object()) {
    (void)json.choice({"cpu"});
    rule.layers = all_layers;
    return rule;
  }
  json.only_keys({"layers", "modules"});
  if (json.find("layers") && json.find("modules")) {
    json.fail("takes \"layers\" or \"modules\", not both");
  }
  if (const auto layers = json.find("layers")) {
    rule.layers = layers->integer(0, all_layers);
    return rule;
  }
  for (const JsonReader& module : json.at("modules").elements()) {
    rule.modules.push_back(module_named(module.choice(offload_module_names())));
  }
  return rule;
}

// FSDP keeps shards, gradients and the optimizer there, all or nothing.
bool offloads_shards(const Strategy& options) {
  const Runtime& runtime = options.runtime;
  return options.shards_parameters && runtime.gathers.grain == Grain::unit &&
         runtime.reductions.grain == Grain::unit &&
         runtime.reductions.copies != GradientCopies::none;
}

void check_parameters_on_host(const JsonReader& json, const Strategy& options) {
  if (offloads_shards(options)) return;
  const Runtime& runtime = options.runtime;
  if (!runtime.flat_parameters) {
    json.fail(
        "parameters are kept on the host by \"fsdp1\", \"fsdp2\" and \"torchtitan\", and by "
        "\"deepspeed\" with \"zero_stage\" 3, over more than one device that the batch is split "
        "over");
  }
  if (runtime.flat_parameters->secondary_shards > 0) {
    json.fail("beside \"hpz\" is not supported by this version: its second parts lie there, too");
  }
}

// "cpu", or of Megatron's buffers {"fraction": 0.5, "overlap": true}.
void read_optimizer_on_host(const JsonReader& json, Strategy& options) {
  Runtime& runtime = options.runtime;
  if (runtime.parameters_on_host && !runtime.flat_parameters) {  // all of it is there
    (void)json.choice({"cpu"});
    return;
  }
  if (offloads_shards(options)) {
    json.fail("FSDP keeps it on the host with parameters and gradients: \"parameters\": \"cpu\"");
  }
  const std::optional<GradientBuffer>& buffer = runtime.reductions.buffer;
  if (!buffer || !runtime.flat_optimizer || buffer->kept == BufferKept::step) {
    json.fail(
        "the optimizer is kept on the host by \"deepspeed\" with \"zero_stage\" 2 or 3, by "
        "\"megatron\" with its distributed optimizer, and with parameters by FSDP");
  }
  const bool leave = buffer->kept != BufferKept::always;
  if (leave || !json.is_object()) {
    (void)json.choice({"cpu"});
  } else {
    json.only_keys({"fraction", "overlap"});
    if (const auto fraction = json.find("fraction")) {
      runtime.share_on_host = fraction->number();
      const bool is_share = runtime.share_on_host > 0 && runtime.share_on_host <= 1;
      if (!is_share) fraction->fail("expected a number above 0 and up to 1");
    }
    if (const auto overlap = json.find("overlap")) runtime.copies_beside_host = overlap->boolean();
  }
  if (leave && (options.sequence_parallel || runtime.counts_tokens)) {
    json.fail(
        "beside \"sequence_parallel\" and \"loss_per_token\" is not supported by this version: "
        "they change gradients behind their reduction");
  }
  runtime.optimizer_on_host = true;
}

}  // namespace

void read_offload(const JsonReader& strategy, Strategy& options) {
  const auto offload = strategy.is_object() ? strategy.find("offload") : std::nullopt;
  if (!offload || offload->is_null()) return;
  offload->only_keys({"optimizer", "parameters", "activations"});
  const auto on_host = [&](const char* key) {
    const auto given = offload->find(key);
    if (!given || given->is_null()) return false;
    (void)given->choice({"cpu"});
    return true;
  };
  if (on_host("parameters")) {
    check_parameters_on_host(offload->at("parameters"), options);
    options.runtime.parameters_on_host = true;
  }
  const auto optimizer = offload->find("optimizer");
  if (optimizer && !optimizer->is_null()) read_optimizer_on_host(*optimizer, options);
  if (const auto activations = offload->find("activations")) {
    options.runtime.activations_on_host = read_activations_on_host(*activations);
  }
}

Json offload_to_json(const Runtime& runtime) {
  const ActivationsOnHost& rule = runtime.activations_on_host;
  Json json;
  const bool is_usual = runtime.share_on_host == 1 && !runtime.copies_beside_host;
  if (runtime.optimizer_on_host && is_usual) {
    json["optimizer"] = "cpu";
  } else if (runtime.optimizer_on_host) {
    json["optimizer"] = {{"fraction", runtime.share_on_host},
                         {"overlap", runtime.copies_beside_host}};
  }
  if (runtime.parameters_on_host) json["parameters"] = "cpu";
  if (!rule.modules.empty()) {
    json["activations"] = {{"modules", rule.modules}};
  } else if (rule.layers == all_layers) {
    json["activations"] = "cpu";
  } else if (rule.layers > 0) {
    json["activations"] = {{"layers", rule.layers}};
  }
  return json;
}

}  // namespace shardsim
