#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "base/stacks.hpp"
#include "strategies/compile/kernel_lists.hpp"
#include "strategies/frameworks/deepspeed.hpp"
#include "strategies/frameworks/framework.hpp"
#include "strategies/frameworks/megatron.hpp"
#include "strategies/frameworks/nanotron.hpp"
#include "strategies/frameworks/torch.hpp"
#include "strategies/frameworks/xla.hpp"

namespace shardsim {

const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> all = {
      fsdp1_framework(),     fsdp2_framework(),    torchtitan_framework(), ddp_framework(),
      deepspeed_framework(), megatron_framework(), nanotron_framework(),   xla_framework()};
  return all;
}

const Framework* find_framework(std::string_view name) {
  const auto found =
      std::find_if(frameworks().begin(), frameworks().end(),
                   [&](const Framework& framework) { return framework.name == name; });
  return found != frameworks().end() ? &*found : nullptr;
}

Json with_framework_defaults(const JsonReader& workload, std::string_view strategy) {
  Json json = workload.json();
  const Framework* framework = find_framework(strategy);
  if (framework == nullptr) return json;
  if (const auto given = workload.find("precision"); given && !given->is_object()) return json;
  Json& precision = json["precision"];
  for (const auto& [key, type] : framework->precision) {
    if (!precision.contains(key)) precision[key] = type;
  }
  const auto remade = workload.find("rematerialization");
  if (!remade || !remade->is_string()) return json;
  for (const auto& [word, meaning] : framework->rematerialization) {
    if (remade->string() == word) json["rematerialization"] = Json::parse(meaning);
  }
  return json;
}

bool has_axis(const Mesh& mesh, const AxisRoles& roles, AxisRole role) {
  return std::any_of(mesh.axes().begin(), mesh.axes().end(), [&](const MeshAxis& axis) {
    return axis.size > 1 && roles.of(axis.name) == role;
  });
}

void fuse_as_megatron(Strategy& options) {
  Json& kernels = *options.kernels;
  if (kernels == "eager") kernels = Json{{"base", kernels}};
  if (!kernels.is_object() || kernels.contains("fused")) return;
  if (kernels.value("base", "eager") != "eager") return;
  kernels["fused"] = {"bias_dropout_add", "scaled_masked_softmax"};
}

void split_context(const Mesh& mesh, const AxisRoles& roles, ContextMethod method,
                   Strategy& options) {
  options.context.method = method;
  for (const MeshAxis& axis : mesh.axes()) {
    if (axis.size > 1 && roles.of(axis.name) == AxisRole::context) {
      options.sequence_axes.push_back(axis.name);
    }
  }
}

void read_kernels(const JsonReader& strategy, Strategy& options) {
  const auto kernels = strategy.is_object() ? strategy.find("kernels") : std::nullopt;
  if (!kernels) return;
  *options.kernels = kernels->json();
  if (!kernels->is_object()) {
    (void)kernels->choice(stacks());
    return;
  }
  kernels->only_keys({"base", "attention", "loss", "graphs", "fused",
                      "gradient_accumulation_fusion", "bias_gelu_fusion", "softmax_in_fp32",
                      "deterministic"});
  if (const auto base = kernels->find("base")) (void)base->choice(stacks());
  if (const auto loss = kernels->find("loss")) {
    (void)loss->choice({"plain", "parallel", "fused", "compiled"});
  }
  std::string unmodelled;
  const auto add = [&](const std::string& what) {
    unmodelled += (unmodelled.empty() ? "" : ", ") + what;
  };
  if (const auto fused = kernels->find("fused")) {
    for (const JsonReader& json : fused->elements()) {
      const std::string name = json.choice(fusions());
      if (!acts(name)) add("fused " + name);
    }
  }
  if (const auto graphs = kernels->find("graphs")) {
    if (graphs->is_array()) {
      bool acts = false;
      for (const JsonReader& module : graphs->elements()) acts |= module.string() == "attn";
      if (!acts) add("graphs of modules without \"attn\"");
    } else {
      (void)graphs->choice({"none", "layer", "full-iteration"});
    }
  }
  for (const char* key :
       {"gradient_accumulation_fusion", "bias_gelu_fusion", "softmax_in_fp32", "deterministic"}) {
    if (kernels->find(key)) add(key);
  }
  if (!unmodelled.empty()) {
    options.notes.push_back("\"kernels\": " + unmodelled + " has no effect on times yet");
  }
}

}  // namespace shardsim
