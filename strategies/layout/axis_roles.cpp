#include "strategies/layout/axis_roles.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/json.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/strategy.hpp"
#include "strategies/strategy_keys.hpp"

namespace shardsim {
namespace {

struct RoleRow {
  AxisRole role;
  std::string_view name;
  std::string_view purpose;  // "axis "pp" is for ..."
  std::vector<std::string> axes;
};

const std::vector<RoleRow>& role_rows() {
  static const std::vector<RoleRow> rows = {
      {AxisRole::batch,
       "batch",
       "the batch",
       {"data", "dp", "replica", "dp_replicate", "dcn", "diloco"}},
      {AxisRole::shard,
       "shard",
       "shards of the parameters",
       {"fsdp", "dp_shard", "shard", "zero", "fsdp_transpose"}},
      {AxisRole::model, "model", "the model", {"tp", "model", "tensor", "tensor_sequence"}},
      {AxisRole::context, "context", "parts of the sequence", {"cp", "context", "sequence", "sp"}},
      {AxisRole::stages, "stages", "pipeline stages", {"pp", "stage", "pipeline"}},
      {AxisRole::experts, "experts", "experts", {"ep", "expert", "exp"}},
      {AxisRole::etp, "etp", "the model axis of experts", {"etp"}}};
  return rows;
}

const RoleRow& row_of(AxisRole role) {
  return role_rows()[static_cast<std::size_t>(role)];  // rows are in the order of the enum
}

bool holds(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// A name too short to be told from any other short name gets no suggestion.
std::string axis_meant_by(const std::string& name) {
  constexpr std::size_t too_short = 3;
  if (name.size() <= too_short) return "";
  std::vector<std::string> known;
  for (const RoleRow& row : role_rows())
    known.insert(known.end(), row.axes.begin(), row.axes.end());
  return closest(name, known);
}

// Does the text have the axis as a word? Rules of other frameworks name axes in languages of their
// own: fsdp(axis="data").
bool has_word(const std::string& text, const std::string& word) {
  const auto is_part = [&](std::size_t i) {
    return i < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + word.size())) return true;
  }
  return false;
}

bool any_text_names(const Json& json, const std::string& axis) {
  if (json.is_string()) return has_word(json.get_ref<const std::string&>(), axis);
  return json.is_structured() && std::any_of(json.begin(), json.end(), [&](const Json& part) {
           return any_text_names(part, axis);
         });
}

bool any_spec_names(const std::vector<Rule>& rules, const std::string& axis) {
  return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) {
    return std::any_of(rule.spec.begin(), rule.spec.end(), [&](const SpecEntry& entry) {
      return std::any_of(entry.axes.begin(), entry.axes.end(), [&](const std::string& name) {
        return name.substr(0, name.find(':')) == axis;  // "x:(1)2" is a part of x
      });
    });
  });
}

// Does the strategy do with the axis what it is for?
bool serves(const Strategy& strategy, const std::string& axis, std::optional<AxisRole> role) {
  if (names_axis(strategy, axis)) return true;
  if (strategy.pipeline && strategy.pipeline->axis == axis) return true;
  if (strategy.shifting && strategy.shifting->axis == axis) return true;
  if (!strategy.is_rule_system()) return false;
  // Whose programs split more than parameters over it, the batch over experts' axes for one.
  if (role && role != AxisRole::model) return false;
  return role == AxisRole::model || any_text_names(*strategy.system, axis);
}

std::string served_roles(const Strategy& strategy) {
  if (strategy.is_rule_system()) return "batch, shard and model axes";
  const Recipe* recipe = find_recipe(strategy.name);
  if (recipe != nullptr && recipe->by_rules_alone)
    return "batch, shard and stages axes and those that its rules name";
  return strategy.splits_model ? "batch, shard and stages axes and one model axis"
                               : "batch, shard and stages axes";
}

std::string advice(const Strategy& strategy, const std::string& axis, AxisRole role) {
  if (role == AxisRole::context) {
    return fmt::format(
        "; \"sequence_axes\": [\"{}\"] in the strategy splits the sequence over it, with keys and "
        "values gathered",
        axis);
  }
  if (strategy.is_rule_system() && any_text_names(*strategy.system, axis)) {
    return fmt::format(
        "; \"roles\": {{\"{}\": \"model\"}} splits over it what its rules say, and \"batch\" the "
        "batch, too",
        axis);
  }
  if (role == AxisRole::model && !strategy.splits_model) {
    return "; strategies with a model axis are tp and fsdp+tp";
  }
  if (role == AxisRole::model) {
    return fmt::format("; that is \"{}\", or \"model_axis\" in the strategy", strategy.model_axis);
  }
  return "";
}

[[noreturn]] void fail_without_role(const JsonReader& place, const std::string& axis) {
  const std::string message = fmt::format("axis \"{}\" has no role by its name", axis);
  const std::string meant = axis_meant_by(axis);
  if (!meant.empty()) place.fail(message, meant);
  place.fail(fmt::format(
      "{}: give it one, \"roles\": {{\"{}\": \"model\"}} for example, or name it in the "
      "strategy's \"batch_axes\" or rules; roles are {}",
      message, axis, fmt::join(axis_role_names(), ", ")));
}

}  // namespace

bool names_axis(const Strategy& strategy, const std::string& axis) {
  return holds(strategy.batch_axes, axis) || holds(strategy.sequence_axes, axis) ||
         axis == strategy.model_axis || any_spec_names(strategy.rules, axis) ||
         any_spec_names(strategy.activations, axis);
}

bool names_replicas(std::string_view axis) { return axis == "replica" || axis == "dp_replicate"; }

std::string_view name_of(AxisRole role) { return row_of(role).name; }

std::vector<std::string> axis_role_names() {
  std::vector<std::string> names;
  for (const RoleRow& row : role_rows()) names.emplace_back(row.name);
  return names;
}

AxisRoles::AxisRoles(const JsonReader& json, const Mesh& mesh) {
  const std::vector<std::string> names = axis_role_names();
  for (const auto& [axis, role] : json.members()) {
    if (!mesh.find(axis)) {
      std::vector<std::string> known;
      for (const MeshAxis& known_axis : mesh.axes()) known.push_back(known_axis.name);
      json.fail(fmt::format("unknown axis \"{}\"; the mesh has {}", axis, fmt::join(known, ", ")));
    }
    const auto found = std::find(names.begin(), names.end(), role.choice(names));
    given_[axis] = static_cast<AxisRole>(found - names.begin());
  }
}

std::optional<AxisRole> AxisRoles::of(const std::string& axis) const {
  for (const auto* roles : {&given_, &system_}) {
    if (const auto found = roles->find(axis); found != roles->end()) return found->second;
  }
  for (const RoleRow& row : role_rows()) {
    if (holds(row.axes, axis)) return row.role;
  }
  return std::nullopt;
}

AxisRoles AxisRoles::of_system(const std::map<std::string, AxisRole>& roles) const {
  AxisRoles result = *this;
  result.system_ = roles;
  return result;
}

void require_served_axes(const Strategy& strategy, const Mesh& mesh, const AxisRoles& given,
                         const JsonReader& mesh_json) {
  if (!strategy.layout.is_null()) return;  // that says itself what axes are for
  const AxisRoles roles = given.of_system(system_axes(strategy, mesh).roles);
  for (const MeshAxis& axis : mesh.axes()) {
    const std::optional<AxisRole> role = roles.of(axis.name);
    if (axis.size == 1 || serves(strategy, axis.name, role)) continue;
    const JsonReader place = mesh_json.is_object() ? mesh_json.at(axis.name) : mesh_json;
    if (!role) fail_without_role(place, axis.name);
    if (*role == AxisRole::batch || *role == AxisRole::shard) {
      place.fail(fmt::format("axis \"{}\" is for {}, but not among the strategy's \"batch_axes\"",
                             axis.name, row_of(*role).purpose));
    }
    place.fail(fmt::format(
        "axis \"{}\" is for {}, which strategy \"{}\" does not split over it: it serves {}{}",
        axis.name, row_of(*role).purpose, strategy.name, served_roles(strategy),
        advice(strategy, axis.name, *role)));
  }
}

}  // namespace shardsim
