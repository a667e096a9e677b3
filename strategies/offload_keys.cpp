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
    rule.modules.push_back(module_named(module.choice(module_names())));
  }
  return rule;
}

}  // namespace

void read_offload(const JsonReader& strategy, Strategy& options) {
  const auto offload = strategy.is_object() ? strategy.find("offload") : std::nullopt;
  if (!offload || offload->is_null()) return;
  offload->only_keys({"optimizer", "parameters", "activations"});
  for (const char* key : {"optimizer", "parameters"}) {
    const auto given = offload->find(key);
    if (!given || given->is_null()) continue;
    (void)given->choice({"cpu"});
    given->fail(
        "what is kept on the host is activations; others are not supported by this version");
  }
  if (const auto activations = offload->find("activations")) {
    options.runtime.activations_on_host = read_activations_on_host(*activations);
  }
}

Json offload_to_json(const Runtime& runtime) {
  const ActivationsOnHost& rule = runtime.activations_on_host;
  if (!rule.modules.empty()) return {{"activations", {{"modules", rule.modules}}}};
  if (rule.layers == 0) return nullptr;
  if (rule.layers == all_layers) return {{"activations", "cpu"}};
  return {{"activations", {{"layers", rule.layers}}}};
}

}  // namespace shardsim
