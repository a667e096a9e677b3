#include "strategies/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "strategies/rules/praxis.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/strategy_keys.hpp"

namespace shardsim {
namespace {

constexpr int max_prefetch = 1024;

bool has(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::vector<std::string> axis_names(const Mesh& mesh) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
  return names;
}

std::string read_whole_axis(const JsonReader& json, const Mesh& mesh) {
  std::string name = json.string();
  if (mesh.find(name)) return name;
  const std::vector<std::string> known = axis_names(mesh);
  const std::string suggestion = closest(name, known);
  if (!suggestion.empty()) json.fail(fmt::format("unknown axis \"{}\"", name), suggestion);
  json.fail(fmt::format("unknown axis \"{}\"; the mesh has {}", name, fmt::join(known, ", ")));
}

// Axis names, one or several.
std::vector<std::string> read_axis_list(const JsonReader& json, const Mesh& mesh) {
  if (json.is_string()) return {read_whole_axis(json, mesh)};
  std::vector<std::string> axes;
  for (const JsonReader& axis : json.elements()) axes.push_back(read_whole_axis(axis, mesh));
  return axes;
}

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
                                   const StrategyOptions& options) {
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

std::vector<std::string> read_axes(const std::optional<JsonReader>& json, const Mesh& mesh,
                                   std::vector<std::string> otherwise) {
  if (!json) return otherwise;
  std::vector<std::string> axes = read_axis_list(*json, mesh);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (std::count(axes.begin(), axes.end(), axes[i]) > 1) {
      json->fail(fmt::format("axis \"{}\" is used twice", axes[i]));
    }
  }
  return axes;
}

// Axes of one device split nothing: they count only where all are of that size.
std::vector<std::string> that_split(const std::vector<std::string>& axes, const Mesh& mesh) {
  std::vector<std::string> large;
  for (const std::string& name : axes) {
    if (mesh.whole(*mesh.find(name)).size > 1) large.push_back(name);
  }
  return large.empty() ? axes : large;
}

std::vector<std::string> axes_with(AxisRole role, const std::vector<std::string>& candidates,
                                   const AxisRoles& roles) {
  std::vector<std::string> axes;
  for (const std::string& name : candidates) {
    if (roles.of(name) == role) axes.push_back(name);
  }
  return axes;
}

std::string default_model_axis(const Mesh& mesh, const AxisRoles& roles) {
  const auto axes = that_split(axes_with(AxisRole::model, axis_names(mesh), roles), mesh);
  return axes.empty() ? "" : axes.front();
}

// The axis made for shards, else the only one that splits the batch.
std::string default_shard_axis(const StrategyOptions& options, const JsonReader& json,
                               const Mesh& mesh, const AxisRoles& roles) {
  const std::vector<std::string> axes = that_split(options.batch_axes, mesh);
  const std::vector<std::string> made = axes_with(AxisRole::shard, axes, roles);
  if (made.size() == 1) return made.front();
  if (made.empty() && axes.size() == 1) return axes.front();
  if (!axes.empty() && mesh.devices() == 1) return axes.front();
  if (axes.empty()) {
    json.fail(fmt::format(
        "strategy \"{}\" needs a batch or shard axis, or \"shard_axis\": {}", options.name,
        json.is_object() && json.find("batch_axes")
            ? "\"batch_axes\" is empty"
            : fmt::format("the mesh has {}{}", fmt::join(axis_names(mesh), ", "),
                          options.model_axis.empty()
                              ? ""
                              : fmt::format(", and \"{}\" splits the model", options.model_axis))));
  }
  json.fail(fmt::format("strategy \"{}\" needs \"shard_axis\": the batch is over {}", options.name,
                        fmt::join(axes, ", ")));
}

// What a rule system's own reader will see of the object, and the defaults that JAX programs want.
void read_system(const JsonReader& json, const RuleSystem& system, StrategyOptions& options) {
  *options.system = {{"name", options.name}};
  options.gather_units = false;
  if (options.name == "fsdp_tutorial") {
    options.reshard_after_forward = options.reshard_root_after_forward = false;
    options.reduce_each_microbatch = ReduceEachMicrobatch::shards;
    options.gather_stored_dtype = true;
  }
  // Its steps return all but the state whole on every device.
  if (options.name == "praxis") options.reduce_loss = options.whole_outputs = true;
  if (!json.is_object()) return;
  if (options.name == "praxis") refuse_keys_of_inputs(json);
  for (const std::string& key : system.keys) {
    if (json.json().contains(key)) (*options.system)[key] = json.json()[key];
  }
  // In its own words: read again they mean the same.
  if (const auto given = json.find("activations")) {
    (*options.system)["activations"] = given->json();
  }
}

void read_fields(const JsonReader& json, const Mesh& mesh, StrategyOptions& options) {
  json.only_keys(keys_of_strategy(options.name));
  const auto flag = [&](std::string_view key, bool& value) {
    if (const auto field = json.find(key)) value = field->boolean();
  };
  flag("sequence_parallel", options.sequence_parallel);
  if (const auto reshard = json.find("reshard_after_forward"); reshard && !reshard->is_number()) {
    options.reshard_after_forward = reshard->boolean();
  }
  flag("reshard_root_after_forward", options.reshard_root_after_forward);
  flag("gather_embedding", options.gather_embedding);
  flag("reduce_loss", options.reduce_loss);
  if (const auto gather = json.find("gather")) {
    options.gather_units = gather->choice(choices_of_key("gather")) == "unit";
  }
  if (const auto outputs = json.find("outputs")) {
    options.whole_outputs = outputs->choice(choices_of_key("outputs")) == "whole";
  }
  if (const auto dtype = json.find("gather_dtype")) {
    options.gather_stored_dtype = dtype->choice(choices_of_key("gather_dtype")) == "parameters";
  }
  if (const auto reduce = json.find("reduce_each_microbatch")) {
    const auto& names = choices_of_key("reduce_each_microbatch");  // in the order of the enum
    const auto found = std::find(names.begin(), names.end(), reduce->choice(names));
    options.reduce_each_microbatch = static_cast<ReduceEachMicrobatch>(found - names.begin());
  }
  if (const auto dimension = json.find("shard_dimension")) {
    options.shard_dimension = dimension->choice(choices_of_key("shard_dimension")) == "first"
                                  ? ShardDimension::first
                                  : ShardDimension::largest;
  }
  if (const auto prefetch = json.find("prefetch")) {
    options.prefetch = static_cast<int>(prefetch->integer(0, max_prefetch));
  }
  if (const auto stage = json.find("zero_stage")) {
    options.zero_stage = static_cast<int>(stage->integer(0, 2));
    if (options.zero_stage > 0 && options.shards_parameters()) {
      stage->fail(fmt::format("strategy \"{}\" is ZeRO stage 3 by itself", options.name));
    }
  }
  if (!options.is_rule_system()) options.rules = read_rules(json.find("rules"), mesh);
  options.activations = read_activations(json, mesh, options);
}

// Has the experiment itself given the axis another role than these?
bool is_given_to_others(const std::string& axis, const AxisRoles& roles,
                        std::initializer_list<AxisRole> wanted) {
  const auto found = roles.given().find(axis);
  return found != roles.given().end() &&
         std::find(wanted.begin(), wanted.end(), found->second) == wanted.end();
}

// Over which the batch goes where nobody says it: those of the rule system, in its order, then the
// axes that are for it by their role.
std::vector<std::string> default_batch_axes(const StrategyOptions& options, const Mesh& mesh,
                                            const AxisRoles& roles, const SystemAxes& system) {
  std::vector<std::string> axes;
  const auto add = [&](const std::string& name) {
    if (name == options.model_axis || has(options.sequence_axes, name) || has(axes, name)) return;
    axes.push_back(name);
  };
  for (const std::string& name : system.batch) {
    const bool others = is_given_to_others(name, roles, {AxisRole::batch, AxisRole::shard});
    if (mesh.find(name) && !others) add(name);
  }
  if (system.batch_is_said) return axes;
  for (const std::string& name : axis_names(mesh)) {
    const auto role = roles.of(name);
    if (role == AxisRole::batch || role == AxisRole::shard || name == options.shard_axis) {
      add(name);
    }
  }
  return axes;
}

// The rule system's, but for those that the user has a use for.
std::vector<std::string> default_sequence_axes(const StrategyOptions& options, const Mesh& mesh,
                                               const AxisRoles& roles, const SystemAxes& system,
                                               const std::vector<std::string>& batch) {
  std::vector<std::string> axes;
  for (const std::string& name : system.sequence) {
    const bool taken = name == options.model_axis || has(batch, name) ||
                       is_given_to_others(name, roles, {AxisRole::context});
    if (mesh.find(name) && !taken) axes.push_back(name);
  }
  return axes;
}

// praxis says it of inputs by their rank: where neither is given, as its configurations do.
void settle_inputs_split_mapping(const JsonReader& json, const SystemAxes& system,
                                 StrategyOptions& options) {
  const auto has_key = [&](std::string_view key) {
    return json.is_object() && json.find(key).has_value();
  };
  const std::string mapping = "inputs_split_mapping";
  if (!has_key(mapping)) {
    if (has_key("batch_axes")) return;
    (*options.system)[mapping] = inputs_split_mapping_of(options.batch_axes, options.sequence_axes);
    return;
  }
  if (options.batch_axes == system.batch && options.sequence_axes == system.sequence) return;
  json.at(mapping).fail(fmt::format(
      "splits batch and sequence over {}, the strategy's axes for them are {}: leave one out",
      to_string({SpecEntry(system.batch), SpecEntry(system.sequence)}),
      to_string({SpecEntry(options.batch_axes), SpecEntry(options.sequence_axes)})));
}

void read_model_axis(const JsonReader& json, const Mesh& mesh, const AxisRoles& roles,
                     StrategyOptions& options) {
  const bool has_use = options.splits_model() || options.sequence_parallel;
  const auto given = json.is_object() ? json.find("model_axis") : std::nullopt;
  if (given && !(given->is_string() && given->string().empty())) {
    options.model_axis = read_whole_axis(*given, mesh);
    if (!has_use && !options.is_rule_system()) {
      given->fail(
          fmt::format("strategy \"{}\" does not split the model; those that do are tp and fsdp+tp",
                      options.name));
    }
  } else if (has_use) {
    options.model_axis = default_model_axis(mesh, roles);
  }
  if (!has_use || !options.model_axis.empty()) return;
  const std::string others = fmt::format("{}", fmt::join(axis_names(mesh), ", "));
  if (options.splits_model()) {
    json.fail(
        fmt::format("strategy \"{}\" needs a model axis: the mesh has {}", options.name, others));
  }
  json.at("sequence_parallel")
      .fail(fmt::format("true needs a model axis, one with that role or \"model_axis\": the mesh "
                        "has {}",
                        others));
}

// "reshard_after_forward" as a number: FSDP2's, over how many devices of the shard axis a unit's
// parameters stay split between forward and backward. 1 is false, all of them true (torch 2.15,
// fully_shard).
void read_kept_over(const JsonReader& json, const Mesh& mesh, StrategyOptions& options) {
  const auto number = json.is_object() ? json.find("reshard_after_forward") : std::nullopt;
  if (!number || !number->is_number()) return;
  if (!options.shards_parameters()) {
    number->fail(fmt::format(
        "a number is of strategies with a shard axis: fsdp, hsdp and fsdp+tp; \"{}\" takes true or "
        "false",
        options.name));
  }
  if (!options.gather_units) {
    number->fail(
        "a number is FSDP2's, which gathers units: \"gather\": \"tensor\" takes true or "
        "false");
  }
  const std::int64_t devices = mesh.whole(*mesh.find(options.shard_axis)).size;
  const std::int64_t over = number->integer(1, devices);
  if (devices % over != 0) {
    number->fail(fmt::format("{} do not divide the {} devices of \"{}\"", over, devices,
                             options.shard_axis));
  }
  options.reshard_after_forward = over > 1;
  if (over > 1 && over < devices) options.kept_over = over;
}

// Axes: what is said, else what the roles suggest; then what the recipe cannot do without.
void read_axis_fields(const JsonReader& json, const Mesh& mesh, const AxisRoles& given,
                      StrategyOptions& options) {
  const SystemAxes system = system_axes(options, mesh);
  const AxisRoles roles = given.of_system(system.roles);
  const auto field = [&](std::string_view key) {
    return json.is_object() ? json.find(key) : std::nullopt;
  };
  read_model_axis(json, mesh, roles, options);
  const auto given_batch = read_axes(field("batch_axes"), mesh, {});
  options.sequence_axes =
      read_axes(field("sequence_axes"), mesh,
                default_sequence_axes(options, mesh, roles, system, given_batch));
  const auto shard = field("shard_axis");
  if (shard) options.shard_axis = read_whole_axis(*shard, mesh);
  if (shard && !options.shards_parameters()) {
    shard->fail(fmt::format(
        "strategy \"{}\" has no shard axis; those that have one are fsdp, hsdp and fsdp+tp",
        options.name));
  }
  options.batch_axes =
      read_axes(field("batch_axes"), mesh, default_batch_axes(options, mesh, roles, system));
  const auto fail_if_both = [&](const std::string& axis, const std::vector<std::string>& axes,
                                std::string_view what) {
    if (has(axes, axis)) json.fail(fmt::format("axis \"{}\" splits both {}", axis, what));
  };
  for (const std::string& axis : options.sequence_axes) {
    fail_if_both(axis, options.batch_axes, "the batch and the sequence");
  }
  fail_if_both(options.model_axis, options.batch_axes, "the batch and the model");
  fail_if_both(options.model_axis, options.sequence_axes, "the sequence and the model");
  if (options.name == "praxis") settle_inputs_split_mapping(json, system, options);
  if (!options.shards_parameters()) return;
  if (!shard) options.shard_axis = default_shard_axis(options, json, mesh, roles);
  if (!has(options.batch_axes, options.shard_axis) &&
      !has(options.sequence_axes, options.shard_axis)) {
    json.fail(
        fmt::format("\"shard_axis\" is \"{}\", which splits neither the batch nor the sequence",
                    options.shard_axis));
  }
  if (options.name == "hsdp" && options.batch_axes.size() < 2) {
    json.fail("strategy \"hsdp\" needs two batch axes: one of shards, one of replicas");
  }
}

}  // namespace

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  for (const RuleSystem& system : rule_systems()) names.emplace_back(system.name);
  return names;
}

SystemAxes system_axes(const StrategyOptions& strategy, const Mesh& mesh) {
  const RuleSystem* system = find_rule_system(strategy.name);
  if (system == nullptr || system->axes == nullptr) return {};
  return system->axes(JsonReader(*strategy.system, strategy.place), mesh);
}

bool StrategyOptions::shards_parameters() const {
  return name == "fsdp" || name == "hsdp" || name == "fsdp+tp";
}

bool StrategyOptions::splits_model() const { return name == "tp" || name == "fsdp+tp"; }

StrategyOptions read_strategy(const JsonReader& json, const Mesh& mesh, const AxisRoles& roles) {
  StrategyOptions options;
  if (!json.is_object() && !json.is_string()) {
    json.fail(
        "expected a name, for example \"fsdp\", or an object with one: {\"name\": \"fsdp\", "
        "\"prefetch\": 2}");
  }
  const JsonReader name = json.is_object() ? json.at("name") : json;
  options.name = name.string();
  options.place = json.place();
  if (!has(strategy_names(), options.name)) {
    const std::string suggestion = closest(options.name, strategy_names());
    if (!suggestion.empty())
      name.fail(fmt::format("unknown strategy \"{}\"", options.name), suggestion);
    name.fail(fmt::format("unknown strategy \"{}\"; known are {}", options.name,
                          fmt::join(strategy_names(), ", ")));
  }
  if (const RuleSystem* system = find_rule_system(options.name)) {
    read_system(json, *system, options);
  }
  if (json.is_object()) read_fields(json, mesh, options);
  read_axis_fields(json, mesh, roles, options);
  read_kept_over(json, mesh, options);
  return options;
}

Json strategy_to_json(const StrategyOptions& options) {
  const auto rules_to_json = [](const std::vector<Rule>& rules) {
    Json list = Json::array();
    for (const Rule& rule : rules) {
      list.push_back({{"pattern", rule.pattern}, {"spec", to_json(rule.spec)}});
    }
    return list;
  };
  Json json = {{"name", options.name}};
  if (!options.shards_parameters()) json["zero_stage"] = options.zero_stage;
  json["batch_axes"] = options.batch_axes;
  json["sequence_axes"] = options.sequence_axes;
  if (options.shards_parameters()) json["shard_axis"] = options.shard_axis;
  json["model_axis"] = options.model_axis;
  json["shard_dimension"] = options.shard_dimension == ShardDimension::first ? "first" : "largest";
  if (!options.is_rule_system()) json["sequence_parallel"] = options.sequence_parallel;
  json["reshard_after_forward"] =
      options.kept_over > 0 ? Json(options.kept_over) : Json(options.reshard_after_forward);
  json["reshard_root_after_forward"] = options.reshard_root_after_forward;
  json["gather"] = options.gather_units ? "unit" : "tensor";
  json["gather_dtype"] = options.gather_stored_dtype ? "parameters" : "compute";
  json["gather_embedding"] = options.gather_embedding;
  json["reduce_loss"] = options.reduce_loss;
  json["outputs"] = options.whole_outputs ? "whole" : "as_made";
  json["reduce_each_microbatch"] = choices_of_key(
      "reduce_each_microbatch")[static_cast<std::size_t>(options.reduce_each_microbatch)];
  json["prefetch"] = options.prefetch;
  if (options.is_rule_system()) {
    json.update(*options.system);
  } else {
    json["rules"] = rules_to_json(options.rules);
  }
  if (!json.contains("activations")) json["activations"] = rules_to_json(options.activations);
  return json;
}

}  // namespace shardsim
