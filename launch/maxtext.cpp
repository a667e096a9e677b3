// MaxText's YAML files: base.yml with what a run has otherwise, and overrides, key=value.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/maxtext_models.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {
namespace maxtext {

// mesh_axes of base.yml, major to minor, and their names in ici_X_parallelism.
struct Axis {
  std::string_view name, key;
  AxisRole role;
};
constexpr Axis mesh_axes[] = {{"diloco", "diloco", AxisRole::batch},
                              {"data", "data", AxisRole::batch},
                              {"stage", "pipeline", AxisRole::stages},
                              {"fsdp", "fsdp", AxisRole::shard},
                              {"fsdp_transpose", "fsdp_transpose", AxisRole::shard},
                              {"sequence", "sequence", AxisRole::context},
                              {"context", "context", AxisRole::context},
                              {"tensor", "tensor", AxisRole::model},
                              {"tensor_sequence", "tensor_sequence", AxisRole::model},
                              {"expert", "expert", AxisRole::experts}};
constexpr std::string_view other_axes[] = {"context_autoregressive", "tensor_transpose",
                                           "autoregressive"};

bool has_experts(const Json& model) {
  const Json config = *load_model_config(JsonReader(model, {"maxtext", "/model"}), "").json;
  return std::any_of(config.items().begin(), config.items().end(), [](const auto& one) {
    return one.key() == "num_local_experts" || one.key() == "num_experts" ||
           one.key() == "n_routed_experts";
  });
}

// What -1 leaves of `all`, among the axes of one network.
void fill_in(Facts& facts, const std::string& prefix, std::int64_t all) {
  std::string open;
  std::int64_t others = 1;
  for (const Axis& axis : mesh_axes) {
    const std::string fact = prefix + std::string(axis.key);
    const std::int64_t size = facts.at(fact).get<std::int64_t>();
    if (size == -1) {
      if (!open.empty()) facts.fail(fact, "is the second axis of -1");
      open = fact;
    } else {
      others *= facts.integer(fact);
    }
  }
  if (open.empty()) {
    if (others != all) {
      facts.fail(prefix + "fsdp", fmt::format("the degrees make {}, of {} {}", others, all,
                                              prefix == "ici." ? "devices in a slice" : "slices"));
    }
    return;
  }
  if (all % others != 0) {
    facts.fail(open, fmt::format("{} {} are no multiple of the {} of the other axes", all,
                                 prefix == "ici." ? "devices in a slice" : "slices", others));
  }
  facts.set(open, all / others, facts.place(open), /*given=*/true);
}

// What the written degrees make, where none is left open.
std::int64_t written_devices(const Facts& facts, const std::string& prefix) {
  std::int64_t devices = 1;
  for (const Axis& axis : mesh_axes) {
    const std::int64_t size = facts.at(prefix + std::string(axis.key)).get<std::int64_t>();
    if (size == -1) return 0;
    devices *= size;
  }
  return devices;
}

std::int64_t read_mesh_of(Facts& facts, const LaunchOptions& options, Json& experiment) {
  for (const std::string_view axis : other_axes) {
    for (const char* prefix : {"ici.", "dcn."}) {
      const std::string fact = prefix + std::string(axis);
      if (facts.at(fact) != 1 && facts.at(fact) != -1) {
        facts.fail(fact, fmt::format("an axis \"{}\" is not simulated under \"xla\"", axis));
      }
    }
  }
  std::int64_t slices = facts.at("arg.slices").get<std::int64_t>();
  if (slices < 1) slices = std::max<std::int64_t>(1, written_devices(facts, "dcn."));
  const std::int64_t written = written_devices(facts, "ici.");
  if (!facts.has("devices") && written == 0) {
    facts.fail("ici.fsdp", "takes what the other degrees leave of the devices: add --devices 64");
  }
  const std::int64_t devices = facts.has("devices") ? facts.integer("devices") : written * slices;
  if (devices % slices != 0) {
    facts.fail("arg.slices", fmt::format("{} slices do not divide {} devices", slices, devices));
  }
  fill_in(facts, "dcn.", slices);
  fill_in(facts, "ici.", devices / slices);
  for (const Axis& axis : mesh_axes) {
    const std::int64_t across = facts.integer("dcn." + std::string(axis.key));
    const std::int64_t size = across * facts.integer("ici." + std::string(axis.key));
    const std::string name(axis.name);
    if (size > 1) experiment["mesh"][name] = size;
    set_slices(name, across, options, experiment);
  }
  if (experiment["mesh"].empty()) experiment["mesh"]["data"] = 1;
  return devices;
}

void read_batch(const Facts& facts, std::int64_t devices, Json& workload) {
  const double whole = facts.number("arg.per_device") * static_cast<double>(devices);
  if (whole < 1 || whole != std::floor(whole)) {
    facts.fail("arg.per_device",
               fmt::format("{} sequences on each of {} devices are no whole batch",
                           facts.number("arg.per_device"), devices));
  }
  const std::int64_t accumulates = facts.integer("arg.accumulates");
  workload["batch"] = static_cast<std::int64_t>(whole) * accumulates;
  workload["microbatches"] = accumulates;
  const std::int64_t stages = facts.integer("ici.pipeline") * facts.integer("dcn.pipeline");
  if (stages == 1) return;
  if (accumulates > 1) {
    facts.fail("arg.accumulates",
               "gradients added up over several runs of a pipeline are not simulated");
  }
  const std::int64_t given = facts.at("arg.microbatches").get<std::int64_t>();
  workload["microbatches"] = given > 0 ? given : stages;
}

void read_types(const Facts& facts, Json& workload) {
  Json& precision = workload["precision"];
  const Json& quantized = facts.at("arg.quantization");
  const bool narrow = !facts.text("arg.quantization").empty();
  precision["compute"] = narrow ? quantized : facts.at("arg.type");
  precision["parameters"] = facts.at("arg.weights");
  // Gradients have the type that the step is differentiated in, then grad_dtype.
  precision["gradients"] = facts.at("arg.gradients");
  if (facts.at("arg.weights") != "fp32") precision["master"] = "none";
  const std::string moments = facts.text("arg.moments");
  precision["moments"] = moments.empty()        ? facts.at("arg.weights")
                         : moments == "float32" ? Json("fp32")
                                                : Json("bf16");
}

// MaxText's names of tensors match nothing where the model has no such layer.
bool has_tensor(const Json& model, std::string_view name) {
  const bool routed = has_experts(model);
  if (name.starts_with("moe_")) return routed;
  if (!name.starts_with("mlp") || !routed) return true;
  const Json config = *load_model_config(JsonReader(model, {"maxtext", "/model"}), "").json;
  return config.value("first_k_dense_replace", 0) > 0 ||
         config.value("interleave_moe_layer_step", 1) > 1;
}

void read_policy(const Facts& facts, Json& workload) {
  const std::string policy = facts.text("arg.policy");
  if (policy == "full" || policy == "none") {
    workload["rematerialization"] = policy;
    return;
  }
  if (policy != "custom") {
    workload["rematerialization"] = {{"policy", policy}};
    return;
  }
  Json save = Json::array(), offload = Json::array();
  for (const auto& [name, fact] : facts.all()) {
    if (!name.starts_with("remat.")) continue;
    const std::string tensor = name.substr(6), where = fact.value->get<std::string>();
    if (where != "remat" && where != "device" && where != "offload") {
      facts.fail(name, fmt::format("expected remat, device or offload, not \"{}\"", where));
    }
    if (where == "remat" || !has_tensor(workload["model"], tensor)) continue;
    if (where == "device" && tensor != "decoder_layer_input") save.push_back(tensor);
    if (where == "offload") offload.push_back(tensor);
  }
  workload["rematerialization"] = {{"save", save}};
  if (!offload.empty()) workload["rematerialization"]["offload"] = offload;
}

void read_pipeline(const Facts& facts, Json& strategy) {
  const std::int64_t stages = facts.integer("ici.pipeline") * facts.integer("dcn.pipeline");
  if (stages == 1) return;
  if (!facts.has("model.layers") && !facts.given("arg.repeats")) {
    facts.fail("arg.repeats", "say how often layers go round: num_pipeline_repeats=1");
  }
  const std::int64_t each = facts.integer("arg.layers_of_stage");
  const std::int64_t repeats = facts.at("arg.repeats").get<std::int64_t>();
  const std::int64_t times =
      repeats > 0 ? repeats : facts.integer("model.layers") / (stages * each);
  // MaxText 0.2.5, layers/pipeline.py: inputs and results are in state_io, dealt out over stages.
  strategy["pipeline"] = {{"schedule", "shifting"}, {"stream_io", true}};
  if (times > 1) strategy["pipeline"]["repeats"] = times;
}

void to_experiment(Facts& facts, const LaunchOptions& options, Notes& notes, Json& experiment) {
  const std::int64_t devices =
      read_mesh_of(facts, options, experiment);  // adds fields: before references
  Json& workload = experiment["workload"];
  if (workload["mtp_layers"] == 0) workload.erase("mtp_layers");
  if (workload["model"].is_null()) workload["model"] = maxtext_model(facts);
  read_batch(facts, devices, workload);
  read_types(facts, workload);
  read_policy(facts, workload);
  workload["dropout"] = facts.flag("arg.has_dropout") ? facts.number("arg.dropout") : 0;
  Json& strategy = experiment["strategy"];
  if (const auto rules = maxtext_rules(facts, experiment["mesh"], has_experts(workload["model"]))) {
    strategy["name"] = "maxtext";
    strategy["rules"] = *rules;
    for (const Json& rule : *rules) {  // an axis of one device may still keep another rule out
      for (const Json& axis : rule[1].is_array() ? rule[1] : Json::array({rule[1]})) {
        Json& size = experiment["mesh"][axis.get<std::string>()];
        if (size.is_null()) size = 1;
      }
    }
  }
  const bool has_own = strategy["name"] == "maxtext";
  if (facts.number("arg.clip") > 0 && !has_own) strategy["clip_gradients"] = true;
  for (const char* axis : {"sequence", "context"}) {
    if (integer_at(experiment["mesh"], axis, 1) > 1) strategy["sequence_axes"].push_back(axis);
  }
  if (strategy.contains("sequence_axes")) {
    strategy["context"] = {{"method", facts.at("arg.context")},
                           {"balanced", facts.flag("arg.balanced")}};
  }
  if (facts.number("arg.capacity") > 0 && has_experts(workload["model"])) {
    strategy["experts"]["capacity_factor"] = facts.number("arg.capacity");
  }
  read_pipeline(facts, strategy);
  if (!has_own) strategy["kernels"] = "xla";
  if (!facts.is("arg.attention", "autoselected") && !has_own) {
    strategy["kernels"] = {{"base", "xla"}, {"attention", facts.at("arg.attention")}};
  }
  notes.emplace_back(has_own
                         ? "rules that are not those of base.yml are taken as they are (strategy "
                           "maxtext), those of activations as what follows from them; clipping "
                           "and the choice of a kernel are left out"
                         : "the rules of base.yml are taken as shards over fsdp and splits over "
                           "tensor (strategy xla)");
}

void add_policy(const Json& policy, Facts& facts) {
  if (policy.is_string()) {
    facts.set("arg.policy", policy);
    return;
  }
  if (policy.contains("policy")) {
    facts.set("arg.policy", policy["policy"]);
    return;
  }
  facts.set("arg.policy", "custom");
  for (const auto& [key, where] : {std::pair{"save", "device"}, {"offload", "offload"}}) {
    if (!policy.contains(key)) continue;
    for (const Json& name : policy[key]) facts.set("remat." + name.get<std::string>(), where);
  }
}

struct Devices {
  std::int64_t all = 1;
  std::int64_t stages = 1;
};

Devices add_mesh(const Json& resolved, Facts& facts) {
  std::vector<NamedRole> roles;
  std::vector<std::string> names;
  for (const Axis& axis : mesh_axes) names.push_back(fmt::format("mesh.{}", axis.name));
  for (std::size_t i = 0; i < std::size(mesh_axes); ++i) {
    roles.push_back({mesh_axes[i].role, names[i]});
  }
  std::reverse(roles.begin(), roles.end());  // the first of a role, where no name is the same
  Facts mesh(facts.whole());
  add_mesh_facts(resolved["mesh"], json_at(resolved, "roles"), roles, facts.whole(), mesh);
  std::int64_t devices = 1, slices = 1;
  for (const Axis& axis : mesh_axes) {
    const std::string name(axis.name), key(axis.key);
    const std::int64_t size = mesh.integer_or("mesh." + name, 1);
    std::int64_t across = integer_at(json_at(resolved, "slices"), name, 1);
    if (size % across != 0) across = 1;
    facts.set("dcn." + key, across);
    facts.set("ici." + key, size / across);
    devices *= size;
    slices *= across;
  }
  if (slices > 1) facts.set("arg.slices", slices);
  return {devices, mesh.integer_or("mesh.stage", 1)};
}

void add_types(const Json& precision, Facts& facts) {
  const std::string compute = precision["compute"];
  const bool narrow = compute == "int8" || compute == "fp8";
  if (narrow) facts.set("arg.quantization", compute);
  if (!narrow) facts.set("arg.type", compute);
  facts.set("arg.weights", precision["parameters"]);
  facts.set("arg.gradients", precision["gradients"]);
  if (precision["moments"] != precision["parameters"]) {
    facts.set("arg.moments", precision["moments"] == "fp32" ? "float32" : "bfloat16");
  }
}

void add_strategy(const Json& strategy, std::int64_t stages, std::int64_t layers, Facts& facts) {
  facts.set("arg.clip", json_at(strategy, "clip_gradients") == true ? 1.0 : 0.0);
  if (const Json context = json_at(strategy, "context"); context.is_object()) {
    facts.set("arg.context", context["method"]);
    facts.set("arg.balanced", context["balanced"]);
  }
  if (const Json factor = json_at(strategy, "experts.capacity_factor"); !factor.is_null()) {
    facts.set("arg.capacity", factor);
  }
  if (stages > 1) {
    const std::int64_t times = integer_at(strategy, "pipeline.repeats", 1);
    facts.set("arg.repeats", times);
    facts.set("arg.layers_of_stage", std::max<std::int64_t>(1, layers / (stages * times)));
  }
  if (const Json attention = json_at(strategy, "kernels.attention"); !attention.is_null()) {
    facts.set("arg.attention", attention);
  }
}

void from_experiment(const Json& resolved, const Json& config, const Place& place, Facts& facts) {
  const Json& workload = resolved["workload"];
  const Json& strategy = resolved["strategy"];
  const auto [devices, stages] = add_mesh(resolved, facts);
  add_maxtext_model_facts(resolved["workload"]["model"], config, place, facts);
  const std::int64_t batch = workload["batch"], microbatches = workload["microbatches"];
  const std::int64_t accumulates = stages > 1 ? 1 : microbatches;
  if (stages > 1 && microbatches != stages) facts.set("arg.microbatches", microbatches);
  facts.set("arg.accumulates", accumulates);
  facts.set("arg.per_device", static_cast<double>(batch) / static_cast<double>(devices) /
                                  static_cast<double>(accumulates));
  facts.set("workload.sequence", json_at(workload, "sequence"));
  facts.set("workload.optimizer", workload["optimizer"]);
  facts.set("workload.mtp_layers", integer_at(workload, "mtp_layers", 0));
  if (workload.contains("dropout")) facts.set("arg.dropout", workload["dropout"]);
  add_types(workload["precision"], facts);
  add_policy(workload["rematerialization"], facts);
  add_strategy(strategy, stages, integer_at(config, "num_hidden_layers", 1), facts);
}

}  // namespace maxtext
}  // namespace

FrameworkFile maxtext_file() {
  return {.name = "maxtext",
          .file = "maxtext.yml",
          .meaning = "MaxText's YAML, what a run has otherwise than base.yml",
          .strategy = "xla",
          .keys = maxtext_keys(),
          .read = read_yaml,
          .to_experiment = maxtext::to_experiment,
          .from_experiment = maxtext::from_experiment,
          .print = print_yaml};
}

}  // namespace shardsim
