#include "strategies/strategy_axes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "strategies/frameworks/framework.hpp"
#include "strategies/rules/praxis.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/strategy_keys.hpp"

namespace shardsim {
namespace {

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
std::string default_shard_axis(const Strategy& options, const JsonReader& json, const Mesh& mesh,
                               const AxisRoles& roles) {
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

// Has the experiment itself given the axis another role than these?
bool is_given_to_others(const std::string& axis, const AxisRoles& roles,
                        std::initializer_list<AxisRole> wanted) {
  const auto found = roles.given().find(axis);
  return found != roles.given().end() &&
         std::find(wanted.begin(), wanted.end(), found->second) == wanted.end();
}

// Over which the batch goes where nobody says it: those of the rule system, in its order, then the
// axes that are for it by their role.
std::vector<std::string> default_batch_axes(const Strategy& options, const Mesh& mesh,
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
    // Under frameworks an axis for experts splits the batch of all else.
    const bool of_experts = role == AxisRole::experts && find_framework(options.name) != nullptr;
    if (role == AxisRole::batch || role == AxisRole::shard || of_experts ||
        name == options.shard_axis) {
      add(name);
    }
  }
  return axes;
}

// The rule system's, but for those that the user has a use for.
std::vector<std::string> default_sequence_axes(const Strategy& options, const Mesh& mesh,
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
void match_inputs_split_mapping(const JsonReader& json, const SystemAxes& system,
                                Strategy& options) {
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
                     Strategy& options) {
  const bool has_use = options.splits_model || options.sequence_parallel;
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
  if (!options.splits_model && find_framework(options.name) != nullptr) {
    options.sequence_parallel = false;  // as theirs is, over one device
    return;
  }
  const std::string others = fmt::format("{}", fmt::join(axis_names(mesh), ", "));
  if (options.splits_model) {
    json.fail(
        fmt::format("strategy \"{}\" needs a model axis: the mesh has {}", options.name, others));
  }
  json.at("sequence_parallel")
      .fail(fmt::format("true needs a model axis, one with that role or \"model_axis\": the mesh "
                        "has {}",
                        others));
}

}  // namespace

void read_strategy_axes(const JsonReader& json, const Mesh& mesh, const AxisRoles& given,
                        Strategy& options) {
  const SystemAxes system = system_axes(options, mesh);
  const AxisRoles roles = given.of_system(system.roles);
  const auto field = [&](std::string_view key) {
    return json.is_object() ? json.find(key) : std::nullopt;
  };
  read_model_axis(json, mesh, roles, options);
  const auto given_batch = read_axes(field("batch_axes"), mesh, {});
  // What a framework has filled in holds where nothing is said.
  const std::vector<std::string> of_framework = options.sequence_axes;
  options.sequence_axes = read_axes(
      field("sequence_axes"), mesh,
      !of_framework.empty() ? of_framework
                            : default_sequence_axes(options, mesh, roles, system, given_batch));
  const auto shard = field("shard_axis");
  if (shard) options.shard_axis = read_whole_axis(*shard, mesh);
  if (shard && !options.shards_parameters) {
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
  const RuleSystem* rules = find_rule_system(options.name);
  if (rules != nullptr && rules->inputs != nullptr) {
    match_inputs_split_mapping(json, system, options);
  }
  if (!options.shards_parameters) return;
  if (options.shard_axis.empty()) {
    options.shard_axis = default_shard_axis(options, json, mesh, roles);
  }
  if (!has(options.batch_axes, options.shard_axis) &&
      !has(options.sequence_axes, options.shard_axis)) {
    json.fail(
        fmt::format("\"shard_axis\" is \"{}\", which splits neither the batch nor the sequence",
                    options.shard_axis));
  }
  const Recipe* recipe = find_recipe(options.name);
  if (recipe != nullptr && recipe->has_replicas && options.batch_axes.size() < 2) {
    json.fail(fmt::format("strategy \"{}\" needs two batch axes: one of shards, one of replicas",
                          options.name));
  }
}

}  // namespace shardsim
