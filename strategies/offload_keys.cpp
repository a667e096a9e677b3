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

void check_parameters_on_host(const JsonReader& json, const Runtime& runtime) {
  if (!runtime.flat_parameters) {
    json.fail(
        "parameters are kept on the host by \"deepspeed\" with \"zero_stage\" 3, over more than "
        "one "
        "device that the batch is split over");
  }
  if (runtime.flat_parameters->secondary_shards > 0) {
    json.fail("beside \"hpz\" is not supported by this version: its second parts lie there, too");
  }
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
    check_parameters_on_host(offload->at("parameters"), options.runtime);
    options.runtime.parameters_on_host = true;
  }
  if (on_host("optimizer")) {
    const std::optional<GradientBuffer>& buffer = options.runtime.reductions.buffer;
    const bool in_parts = buffer && options.runtime.flat_optimizer &&
                          (buffer->kept == BufferKept::shards || buffer->kept == BufferKept::room);
    if (!in_parts) {
      offload->at("optimizer")
          .fail("the optimizer is kept on the host by \"deepspeed\" with \"zero_stage\" 2 or 3");
    }
    if (options.sequence_parallel || options.runtime.counts_tokens) {
      offload->at("optimizer")
          .fail(
              "beside \"sequence_parallel\" and \"loss_per_token\" is not supported by this "
              "version: they change gradients behind their reduction");
    }
    options.runtime.optimizer_on_host = true;
  }
  if (const auto activations = offload->find("activations")) {
    options.runtime.activations_on_host = read_activations_on_host(*activations);
  }
}

Json offload_to_json(const Runtime& runtime) {
  const ActivationsOnHost& rule = runtime.activations_on_host;
  Json json;
  if (runtime.optimizer_on_host) json["optimizer"] = "cpu";
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
