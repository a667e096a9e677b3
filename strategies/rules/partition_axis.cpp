#include "strategies/rules/partition_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

const std::string default_mark = "...";

using Version = PartitionAxis::Version;

struct Field {
  std::string name;
  std::string axis;                    // the default, if it is the name of a mesh axis
  std::vector<std::string> same_as{};  // the default, if it is what earlier fields hold
  std::optional<Version> only{};       // of this version alone

  [[nodiscard]] bool may_be_unset() const { return !same_as.empty(); }
};

const std::string dp = "data_parallel_axis";
const std::string fsdp = "fully_sharded_data_parallel_axis";
const std::string tp = "tensor_parallel_axis";
const std::string sp = "sequence_parallel_axis";
const std::string ep = "expert_parallel_axis";

const std::vector<Field> all_fields = {
    {dp, "dp"},
    {fsdp, "fsdp"},
    {tp, "tp"},
    {sp, "sp"},
    {ep, "ep"},
    {"batch_axis", "", {fsdp, dp}},
    {"sequence_axis", "", {sp}},
    {"query_sequence_axis", "", {sp}},
    {"head_axis", "", {tp}},
    {"kv_head_axis", "", {tp}, Version::later},
    {"key_sequence_axis", "", {sp}},
    {"hidden_state_axis", "", {tp}},
    {"mlp_intermediate_axis", "", {tp}},
    {"vocab_axis", "", {tp}},
    {"expert_axis", "", {ep}},
    {"expert_gate_axis", ""},
    {"attention_dim_axis", ""},
    {"attention_kv_dim_axis", "", {}, Version::later},
    {"bias_head_sequence_axis", ""},
    {"bias_key_sequence_axis", ""},
    {"generation_batch_axis", "", {}, Version::march_2025},
    {"generation_query_sequence_axis", "", {}, Version::march_2025},
    {"generation_head_axis", "", {tp}, Version::march_2025},
    {"generation_key_sequence_axis", "", {sp}, Version::march_2025},
    {"generation_attention_dim_axis", "", {}, Version::march_2025},
    {"decode_batch_axis", "", {"batch_axis"}, Version::later},
    {"decode_query_sequence_axis", "", {}, Version::later},
    {"decode_head_axis", "", {"head_axis"}, Version::later},
    {"decode_kv_head_axis", "", {"kv_head_axis"}, Version::later},
    {"decode_key_sequence_axis", "", {"key_sequence_axis"}, Version::later},
    {"decode_attention_dim_axis", "", {}, Version::later},
    {"decode_attention_kv_dim_axis", "", {}, Version::later},
};

std::vector<Field> fields_of(Version version) {
  std::vector<Field> fields = all_fields;
  std::erase_if(fields, [&](const Field& field) { return field.only && *field.only != version; });
  return fields;
}

void check_fields(const JsonReader& overrides, const std::vector<Field>& fields) {
  std::vector<std::string> known;
  for (const Field& field : fields) known.push_back(field.name);
  for (const auto& [name, value] : overrides.members()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw RuleError("TypeError", value.place(), fmt::format("PartitionAxis has no \"{}\"", name),
                    closest(name, known));
  }
}

const std::vector<std::pair<std::string, AxisRole>> mesh_fields = {{dp, AxisRole::batch},
                                                                   {fsdp, AxisRole::shard},
                                                                   {tp, AxisRole::model},
                                                                   {sp, AxisRole::context},
                                                                   {ep, AxisRole::experts}};

SystemAxes axes_of(Version version, const JsonReader& strategy) {
  const auto given = strategy.find("partition_axis");
  const PartitionAxis fields = given ? PartitionAxis(version, *given) : PartitionAxis(version);
  const Place& place = given ? given->place() : strategy.place();
  SystemAxes axes;
  for (const auto& [field, role] : mesh_fields) {
    if (const std::string* axis = fields.find(field)->name()) axes.roles[*axis] = role;
  }
  axes.batch = to_spec_entry(*fields.find("batch_axis"), place).axes;
  axes.sequence = to_spec_entry(*fields.find("sequence_axis"), place).axes;
  axes.batch_is_said = given && given->json().contains("batch_axis");
  return axes;
}

}  // namespace

AxisRule read_axis_rule(const JsonReader& json) {
  if (json.is_null()) return {};
  if (!json.is_array()) return {json.string()};
  std::vector<AxisRule> list;
  for (const JsonReader& element : json.elements()) list.push_back(read_axis_rule(element));
  return {std::move(list)};
}

Json to_json(const AxisRule& rule) {
  if (rule.is_none()) return nullptr;
  if (rule.name() != nullptr) return *rule.name();
  Json json = Json::array();
  for (const AxisRule& element : *rule.list()) json.push_back(to_json(element));
  return json;
}

SpecEntry to_spec_entry(const AxisRule& rule, const Place& place) {
  if (rule.is_none()) return {};
  if (rule.name() != nullptr) return rule.name()->empty() ? SpecEntry{} : SpecEntry{*rule.name()};
  const std::vector<AxisRule>& parts = *rule.list();
  if (parts.size() == 1 && parts.front().is_none()) return {};
  SpecEntry entry;
  for (const AxisRule& axis : parts) {
    if (axis.list() != nullptr) {
      throw RuleError("ValueError", place,
                      fmt::format("{} is no entry of a PartitionSpec: a list holds axis names only",
                                  to_json(rule).dump()));
    }
    entry.axes.emplace_back(axis.is_none() ? null_in_entry : *axis.name());
  }
  return entry;
}

PartitionAxis::PartitionAxis(Version version) : PartitionAxis(version, nullptr) {}

PartitionAxis::PartitionAxis(Version version, const JsonReader& overrides)
    : PartitionAxis(version, &overrides) {}

PartitionAxis::PartitionAxis(Version version, const JsonReader* overrides) {
  const std::vector<Field> fields = fields_of(version);
  if (overrides != nullptr) check_fields(*overrides, fields);
  for (const Field& field : fields) {
    AxisRule value = field.axis.empty() ? AxisRule{} : AxisRule{field.axis};
    bool unset = field.may_be_unset();
    if (overrides != nullptr && overrides->json().contains(field.name)) {
      const JsonReader given = overrides->at(field.name);
      unset = given.json() == default_mark;
      if (unset && !field.may_be_unset()) {
        throw RuleError(
            "ValueError", given.place(),
            fmt::format("\"{}\" has no default that \"...\" could stand for", field.name));
      }
      if (!unset) value = read_axis_rule(given);
    }
    if (unset && field.same_as.size() == 1) {
      value = *find(field.same_as[0]);
    } else if (unset) {
      std::vector<AxisRule> parts;
      for (const std::string& part : field.same_as) parts.push_back(*find(part));
      value = {std::move(parts)};
    }
    fields_.emplace_back(field.name, std::move(value));
  }
}

SystemAxes axes_of_march_2025(const JsonReader& strategy, const Mesh& /*mesh*/) {
  return axes_of(Version::march_2025, strategy);
}

SystemAxes axes_of_partition_axis(const JsonReader& strategy, const Mesh& /*mesh*/) {
  return axes_of(Version::later, strategy);
}

const AxisRule* PartitionAxis::find(std::string_view field) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(),
                                  [&](const auto& entry) { return entry.first == field; });
  return found == fields_.end() ? nullptr : &found->second;
}

}  // namespace shardsim
