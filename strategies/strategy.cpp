#include "strategies/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "strategies/buffer_keys.hpp"
#include "strategies/context_keys.hpp"
#include "strategies/expert_keys.hpp"
#include "strategies/frameworks/framework.hpp"
#include "strategies/key_choices.hpp"
#include "strategies/offload_keys.hpp"
#include "strategies/rules/praxis.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/runtime_keys.hpp"
#include "strategies/strategy_axes.hpp"
#include "strategies/strategy_keys.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t largest_vocabulary_multiple = 1 << 24;

PartitionSpec read_spec(const JsonReader& json, const Mesh& mesh) {
  PartitionSpec spec = read_partition_spec(json);
  check_axes(spec, mesh, json.place());
  return spec;
}

// The pair that rule systems write, in the form of a rule: what was meant.
std::string rule_form(const Json& json) {
  Json rule = {{"pattern", "q_proj"}, {"spec", {"fsdp", nullptr}}};
  const bool is_pair = json.is_array() && json.size() == 2 && json[0].is_string();
  if (is_pair) {
    rule["pattern"] = json[0];
    rule["spec"] = json[1].is_array() ? json[1] : Json::array({json[1]});
  }
  return fmt::format("expected an object{} {}", is_pair ? ":" : ", for example", rule.dump());
}

std::vector<Rule> read_rules(const std::optional<JsonReader>& json, const Mesh& mesh) {
  std::vector<Rule> rules;
  if (!json) return rules;
  for (const JsonReader& element : json->elements()) {
    if (!element.is_object()) element.fail(rule_form(element.json()));
    element.only_keys({"pattern", "spec"});
    rules.push_back(
        {element.at("pattern").string(), read_spec(element.at("spec"), mesh), element.place()});
  }
  return rules;
}

bool has_all_axes(const PartitionSpec& spec, const Mesh& mesh) {
  return std::all_of(spec.begin(), spec.end(), [&](const SpecEntry& entry) {
    return std::all_of(entry.axes.begin(), entry.axes.end(),
                       [&](const std::string& axis) { return mesh.parse(axis).has_value(); });
  });
}

// Of a rule system in its own words, and with axes that the mesh lacks where it takes these.
std::vector<Rule> read_activations(const JsonReader& json, const Mesh& mesh,
                                   const Strategy& options) {
  const RuleSystem* system = find_rule_system(options.name);
  const auto given = json.find("activations");
  if (!given || system == nullptr) return read_rules(given, mesh);
  const JsonReader own(*options.system, options.place);
  std::vector<Rule> rules;
  for (const JsonReader& element : given->elements()) {
    element.only_keys({"pattern", "spec"});
    const JsonReader spec = element.at("spec");
    Rule rule{element.at("pattern").string(),
              system->read_activation != nullptr ? system->read_activation(spec, own)
                                                 : read_partition_spec(spec),
              element.place()};
    const bool refuses = system->unfit_activation == UnfitActivation::refused;
    if (refuses || has_all_axes(rule.spec, mesh)) check_axes(rule.spec, mesh, spec.place());
    rules.push_back(std::move(rule));
  }
  return rules;
}

// What a rule system's own reader will see of the object, and the defaults that JAX programs want.
void read_system(const JsonReader& json, const RuleSystem& system, Strategy& options) {
  *options.system = {{"name", options.name}};
  options.runtime = system.runtime;
  options.whole_outputs = system.whole_outputs;
  if (!json.is_object()) return;
  if (system.inputs != nullptr) refuse_keys_of_inputs(json);
  for (const std::string& key : system.keys) {
    if (json.json().contains(key)) (*options.system)[key] = json.json()[key];
  }
  // In its own words: read again they mean the same.
  if (const auto given = json.find("activations")) {
    (*options.system)["activations"] = given->json();
  }
}

void read_fields(const JsonReader& json, const Mesh& mesh, Strategy& options) {
  json.only_keys(keys_of_strategy(options.name));
  const auto flag = [&](std::string_view key, bool& value) {
    if (const auto field = json.find(key)) value = field->boolean();
  };
  flag("sequence_parallel", options.sequence_parallel);
  flag("loss_parallel", options.loss_parallel);
  flag("shard_context", options.shards_over_context);
  read_enum(json, "input_gradients", options.input_gradients);
  if (const auto layout = json.find("layout")) *options.layout = layout->json();
  flag("gather_embedding", options.gather_embedding);
  read_choice(json, "saved_inputs", "sharded", options.saves_sharded_inputs);
  if (const auto latents = json.find("latents")) {
    const auto word = latents->choice({"whole", "split", "first"});
    options.split_latents = word == "split";
    options.latents_first = word != "whole";
  }
  if (const auto multiple = json.find("vocabulary_multiple")) {
    options.vocabulary_multiple = multiple->integer(1, largest_vocabulary_multiple);
  }
  read_choice(json, "outputs", "whole", options.whole_outputs);
  read_enum(json, "shard_dimension", options.shard_dimension);
  if (const auto stage = json.find("zero_stage")) {
    options.zero_stage = static_cast<int>(stage->integer(0, 3));
    if (options.zero_stage > 0 && options.shards_parameters) {
      stage->fail(fmt::format("strategy \"{}\" is ZeRO stage 3 by itself", options.name));
    }
  }
  if (!options.is_rule_system()) options.rules = read_rules(json.find("rules"), mesh);
  options.activations = read_activations(json, mesh, options);
}

// "reshard_after_forward" as a number: FSDP2's, over how many devices of the shard axis a unit's
// parameters stay split between forward and backward. 1 is false, all of them true (torch 2.15,
// fully_shard).
void read_kept_over(const JsonReader& json, const Mesh& mesh, Strategy& options) {
  const auto number = json.is_object() ? json.find("reshard_after_forward") : std::nullopt;
  if (!number || !number->is_number()) return;
  if (!options.shards_parameters) {
    number->fail(fmt::format(
        "a number is of strategies with a shard axis: fsdp, hsdp and fsdp+tp; \"{}\" takes true or "
        "false",
        options.name));
  }
  if (options.runtime.gathers.grain == Grain::tensor) {
    number->fail(
        "a number is FSDP2's, which gathers units: \"gather\": \"tensor\" takes true or "
        "false");
  }
  if (options.runtime.experts_apart) {
    number->fail(
        "a number beside \"expert_units\": \"own\" is not supported by this version; true or "
        "false is");
  }
  const std::int64_t devices = mesh.whole(*mesh.find(options.shard_axis)).size;
  const std::int64_t over = number->integer(1, devices);
  if (devices % over != 0) {
    number->fail(fmt::format("{} do not divide the {} devices of \"{}\"", over, devices,
                             options.shard_axis));
  }
  Gathers& gathers = options.runtime.gathers;
  gathers.kept = over > 1 ? Kept::forward : Kept::backward;
  if (over > 1 && over < devices) gathers.slices = KeptSlices{options.shard_axis, over};
}

// An axis for stages is one unless the strategy uses it otherwise. What a pipeline changes of the
// runtime: gradients are reduced once, as torch.distributed.pipelining has it.
void read_stages(const JsonReader& json, const Mesh& mesh, const AxisRoles& roles,
                 Strategy& options) {
  options.shifting = read_shifting_stages(json, mesh, roles);
  const Framework* framework = find_framework(options.name);
  if (options.shifting && framework != nullptr && framework->name != "xla") {
    json.at("pipeline")
        .at("schedule")
        .fail(fmt::format("\"shifting\" is one program that XLA splits; {} has the schedules of "
                          "docs/pipelines.md",
                          options.name));
  }
  if (options.shifting) {
    if (options.shifting->stages == 1) options.shifting.reset();
    return;
  }
  if (options.is_rule_system()) {
    if (json.is_object() && json.find("pipeline")) {
      json.at("pipeline")
          .fail("of a rule system's program stages shift: \"schedule\": \"shifting\"");
    }
    return;
  }
  const auto has_key = [&](std::string_view key) {
    return json.is_object() && json.find(key).has_value();
  };
  std::optional<Pipeline> pipeline = read_pipeline(json, mesh, roles);
  if (!pipeline) return;
  if (options.runtime.units == UnitsOf::model && has_key("units")) {
    json.at("units").fail(
        "\"model\" is one unit of all parameters, and stages are modules of their own: \"layers\" "
        "makes each layer one");
  }
  const bool otherwise = !options.layout.is_null() || names_axis(options, pipeline->axis);
  if (otherwise && !has_key("pipeline")) return;
  options.pipeline = std::move(pipeline);
  if (!has_key("reduce_each_microbatch")) {
    options.runtime.reductions.each_microbatch = ReduceEachMicrobatch::none;
  }
  options.runtime.reductions.after_last_backward = options.shards_parameters;
  if (framework != nullptr && framework->stages != nullptr) framework->stages(options);
}

}  // namespace

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  for (const Framework& framework : frameworks()) names.emplace_back(framework.name);
  for (const RuleSystem& system : rule_systems()) names.emplace_back(system.name);
  return names;
}

AxisList shard_axes(const Strategy& strategy, const Mesh& mesh) {
  std::vector<std::string> names = {strategy.shard_axis};
  if (strategy.shards_over_context) {
    for (const std::string& axis : strategy.sequence_axes) {
      if (axis != strategy.shard_axis) names.push_back(axis);
    }
  }
  return splitting_axes(names, mesh);
}

SystemAxes system_axes(const Strategy& strategy, const Mesh& mesh) {
  const RuleSystem* system = find_rule_system(strategy.name);
  if (system == nullptr || system->axes == nullptr) return {};
  return system->axes(JsonReader(*strategy.system, strategy.place), mesh);
}

Strategy read_strategy(const JsonReader& json, const Mesh& mesh, const AxisRoles& roles) {
  Strategy options;
  if (!json.is_object() && !json.is_string()) {
    json.fail(
        "expected a name, for example \"fsdp\", or an object with one: {\"name\": \"fsdp\", "
        "\"prefetch\": 2}");
  }
  const JsonReader name = json.is_object() ? json.at("name") : json;
  options.name = name.string();
  options.place = json.place();
  const std::vector<std::string> known = strategy_names();
  if (std::find(known.begin(), known.end(), options.name) == known.end()) {
    const std::string suggestion = closest(options.name, known);
    if (!suggestion.empty())
      name.fail(fmt::format("unknown strategy \"{}\"", options.name), suggestion);
    name.fail(
        fmt::format("unknown strategy \"{}\"; known are {}", options.name, fmt::join(known, ", ")));
  }
  if (const RuleSystem* system = find_rule_system(options.name)) {
    read_system(json, *system, options);
  }
  if (const Recipe* recipe = find_recipe(options.name)) {
    options.shards_parameters = recipe->shards_parameters;
    options.splits_model = recipe->splits_model;
  }
  const Framework* framework = find_framework(options.name);
  if (framework != nullptr) {
    framework->begin(json, mesh, roles, options);
  }
  if (json.is_object()) {
    read_fields(json, mesh, options);
    if (!options.is_rule_system()) read_context(json, options.context);
    read_runtime_keys(json, options.runtime);
  }
  read_strategy_axes(json, mesh, roles, options);
  if (options.is_rule_system()) {
    deal_out_by_system(system_axes(options, mesh).experts, mesh, options);
  } else {
    read_expert_keys(json, mesh, roles, options);
  }
  if (framework != nullptr && framework->finish != nullptr) framework->finish(json, mesh, options);
  if (options.zero_stage == 3) {
    json.at("zero_stage")
        .fail("ZeRO 3 is \"deepspeed\" or, layer by layer, \"fsdp\", \"fsdp1\" and \"fsdp2\"");
  }
  read_buffer_keys(json, mesh, options);
  read_offload(json, options);
  read_kept_over(json, mesh, options);
  read_stages(json, mesh, roles, options);
  return options;
}

Json strategy_to_json(const Strategy& options) {
  const auto rules_to_json = [](const std::vector<Rule>& rules) {
    Json list = Json::array();
    for (const Rule& rule : rules) {
      list.push_back({{"pattern", rule.pattern}, {"spec", to_json(rule.spec)}});
    }
    return list;
  };
  Json json = {{"name", options.name}};
  if (!options.shards_parameters) json["zero_stage"] = options.zero_stage;
  json["batch_axes"] = options.batch_axes;
  json["sequence_axes"] = options.sequence_axes;
  if (options.shards_parameters) json["shard_axis"] = options.shard_axis;
  if (options.shards_over_context) json["shard_context"] = true;
  if (!options.sequence_axes.empty()) json["context"] = context_to_json(options.context);
  json["model_axis"] = options.model_axis;
  json["shard_dimension"] = enum_name("shard_dimension", options.shard_dimension);
  if (!options.is_rule_system()) {
    json["sequence_parallel"] = options.sequence_parallel;
    json["loss_parallel"] = options.loss_parallel;
  }
  json["input_gradients"] = enum_name("input_gradients", options.input_gradients);
  json.update(runtime_keys_to_json(options.runtime));
  if (options.is_rule_system()) {  // whose runtime says less
    for (const StrategyKey& key : strategy_keys()) {
      if (key.of_recipes_alone) json.erase(std::string(key.name));
    }
  }
  const Framework* framework = find_framework(options.name);
  const bool may_shard = framework != nullptr &&
                         std::count(framework->keys.begin(), framework->keys.end(), "fsdp") > 0;
  if (may_shard && options.shards_parameters) json["fsdp"] = true;
  json.update(buffer_keys_to_json(options.runtime));
  if (options.experts && !options.is_rule_system()) {
    json["experts"] = expert_keys_to_json(options.experts);
  }
  if (Json offload = offload_to_json(options.runtime); !offload.is_null()) {
    json["offload"] = std::move(offload);
  }
  if (options.saves_sharded_inputs) json["saved_inputs"] = "sharded";
  if (!options.model_axis.empty() || options.latents_first) {
    json["latents"] = options.split_latents ? "split" : options.latents_first ? "first" : "whole";
  }
  if (options.vocabulary_multiple > 1) json["vocabulary_multiple"] = options.vocabulary_multiple;
  if (!options.kernels.is_null()) json["kernels"] = *options.kernels;
  json["outputs"] = options.whole_outputs ? "whole" : "as_made";
  json["gather_embedding"] = options.gather_embedding;
  if (options.is_rule_system()) {
    json.update(*options.system);
  } else {
    json["rules"] = rules_to_json(options.rules);
  }
  if (!json.contains("activations")) json["activations"] = rules_to_json(options.activations);
  if (options.pipeline) json["pipeline"] = pipeline_to_json(*options.pipeline);
  if (options.shifting) json["pipeline"] = shifting_stages_to_json(*options.shifting);
  if (!options.layout.is_null()) json["layout"] = *options.layout;
  return json;
}

}  // namespace shardsim
