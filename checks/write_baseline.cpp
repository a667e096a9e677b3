#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/version.hpp"
#include "checks/baseline.hpp"
#include "checks/member_names.hpp"

namespace shardsim {
namespace {

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// With a space behind every comma and colon.
std::string one_line(const Json& value) {
  if (!value.is_structured() || value.empty()) return dumped(value);
  std::string inside;
  for (const auto& [key, member] : value.items()) {
    if (!inside.empty()) inside += ", ";
    if (value.is_object()) inside += dumped(key) + ": ";
    inside += one_line(member);
  }
  return value.is_object() ? "{" + inside + "}" : "[" + inside + "]";
}

// The members of the outermost `levels` containers have a line each.
std::string indented(const Json& value, int levels, const std::string& indent) {
  if (levels == 0 || !value.is_structured() || value.empty()) return one_line(value);
  std::string inside;
  for (const auto& [key, member] : value.items()) {
    inside += inside.empty() ? "\n" : ",\n";
    inside += indent + " ";
    if (value.is_object()) inside += dumped(key) + ": ";
    inside += indented(member, levels - 1, indent + " ");
  }
  inside += "\n" + indent;
  return value.is_object() ? "{" + inside + "}" : "[" + inside + "]";
}

Json made_from_json(const MadeFrom& made_from) {
  Json json = Json::object();
  const auto add = [&](const char* key, const std::string& digest) {
    if (!digest.empty()) json[key] = digest;
  };
  add("experiment", made_from.experiment);
  add("model", made_from.model);
  add("machine", made_from.machine);
  add("calibration", made_from.calibration);
  add("shardsim", made_from.shardsim);
  return json;
}

Json communication_json(const Recorded& recorded) {
  Json json = Json::object();
  for (const auto& [name, traffic] : recorded.communication) {
    json[name] = {{"calls", traffic.calls}, {"wire_bytes", traffic.wire.count()}};
  }
  return json;
}

Json collectives_json(const Recorded& recorded) {
  Json json = Json::array();
  for (const RecordedCollective& one : recorded.collectives) {
    json.push_back({{"kind", one.kind},
                    {"over", one.over},
                    {"dtype", one.dtype},
                    {"payload_bytes", one.payload.count()},
                    {"calls", one.calls},
                    {"where", one.where}});
  }
  return json;
}

Json value_json(const std::string& key, double value) {
  if (key == "fits") return value > 0;
  if (!key.ends_with("_s")) return static_cast<std::int64_t>(value);
  return value;
}

Json recorded_json(const std::string& key, const Recorded& recorded) {
  Json json = Json::object();
  const auto add = [&](const char* name, Json value) {
    if (!value.empty()) json[name] = std::move(value);
  };
  if (!recorded.file.empty()) json["file"] = recorded.file;
  if (!recorded.folder.empty()) json["folder"] = recorded.folder;
  if (recorded.name != key) json["name"] = recorded.name;
  add("options", recorded.options);
  add("made_from", made_from_json(recorded.made_from));
  if (!recorded.settings.is_null()) json["settings"] = *recorded.settings;
  for (const std::string& name : recorded_values()) {
    const auto found = recorded.values.find(name);
    if (found != recorded.values.end()) json[name] = value_json(name, found->second);
  }
  add("by_category", recorded.by_category);
  add("communication", communication_json(recorded));
  add("collectives", collectives_json(recorded));
  add("peak_buffers", recorded.peak_buffers);
  add("shardings", fold_members(recorded.shardings));
  add("unmatched_rules", recorded.unmatched_rules);
  return json;
}

}  // namespace

std::string baseline_text(const Baseline& baseline) {
  Json json = {{"schema", "shardsim/baseline/1"}, {"shardsim", program_version}};
  if (!baseline.stated_limits.is_null()) json["limits"] = *baseline.stated_limits;
  json["experiments"] = Json::object();
  for (const auto& [name, recorded] : baseline.experiments) {
    json["experiments"][name] = recorded_json(name, recorded);
  }
  constexpr int levels = 4;  // to the members of an experiment's by_category, collectives, ...
  return indented(json, levels, "") + "\n";
}

}  // namespace shardsim
