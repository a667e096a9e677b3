#include "hardware_profiles/extend_profile.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "hardware_profiles/embedded_profiles.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {
namespace {

constexpr int longest_chain = 8;
// Of a number that is written in place and that the extended profile has not: a profile's number
// needs a date, and whoever writes it there says none. When the form came to be.
constexpr std::string_view date_of_unsourced = "2026-11";

struct NamedDocument {
  std::string file;
  Json document;
};

NamedDocument find_profile(const std::string& name, const std::string& file, const Place& place) {
  if (name.ends_with(".json")) {
    const std::string path = (std::filesystem::path(file).parent_path() / name).string();
    return {path, load_json(path, FileKind::profile)};
  }
  for (const EmbeddedFile& shipped : embedded_profiles()) {
    if (shipped.name == name) return {name, parse_json(shipped.text, name)};
  }
  throw InputError(place, fmt::format("unknown profile \"{}\"", name),
                   closest(name, shipped_profiles()));
}

// A number with its source is one thing, as is whatever is no object.
bool is_whole(const Json& json) { return !json.is_object() || json.contains("value"); }

void replace_members(Json& json, const Json& changes) {
  for (const auto& [key, change] : changes.items()) {
    if (change.is_null()) {
      json.erase(key);
    } else if (!json.contains(key) || is_whole(change) || is_whole(json[key])) {
      json[key] = change;
    } else {
      replace_members(json[key], change);
    }
  }
}

// Paths of calibrations in the document of `from`, as one in `to` writes them.
void move_paths(Json& document, const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  const auto move = [&](Json& name) {
    if (!name.is_string() || !name.get<std::string>().ends_with(".json")) return;
    const fs::path path = fs::path(from).parent_path() / name.get<std::string>();
    name = fs::absolute(path).lexically_proximate(fs::absolute(to).parent_path()).string();
  };
  const auto found = document.find("calibration");
  if (found == document.end()) return;
  if (!found->is_array()) return move(*found);
  for (Json& name : *found) move(name);
}

// Efficiencies of one's own stand in the place of a table of kernels that is inherited.
bool says_efficiencies(const Json& document) {
  const auto device = document.find("device");
  if (device == document.end() || !device->is_object() || device->contains("kernels")) return false;
  return device->contains("matmul_efficiency") || device->contains("attention_efficiency") ||
         (device->contains("surfaces") && !device->at("surfaces").is_null());
}

Json extended(const Json& document, const std::string& file, int links_left) {
  const JsonReader reader(document, {file, ""});
  const auto extends = reader.find("extends");
  if (!extends) return document;
  if (links_left == 0) {
    extends->fail(
        fmt::format("is the end of a chain of more than {} profiles: does one extend "
                    "itself?",
                    longest_chain));
  }
  const NamedDocument base = find_profile(extends->string(), file, extends->place());
  Json result = extended(base.document, base.file, links_left - 1);
  move_paths(result, base.file, file);
  if (says_efficiencies(document)) result["device"].erase("kernels");
  replace_members(result, document);
  result.erase("extends");
  return result;
}

bool is_sourced(const Json& json) { return json.is_object() && json.contains("value"); }

// Numbers that the base has with a source, or has not: as the writer's own.
void add_sources(Json& changes, const Json& base) {
  for (auto& [key, change] : changes.items()) {
    const Json known = base.is_object() && base.contains(key) ? base[key] : Json();
    if (change.is_object()) {
      if (!is_sourced(change)) add_sources(change, known);
      continue;
    }
    const bool is_plain = !known.is_null() && !is_sourced(known);
    if (is_plain || change.is_null() || change.is_array() || key == "kernels") continue;
    change = {{"value", change},
              {"kind", "estimate"},
              {"date", is_sourced(known) ? known["date"] : Json(date_of_unsourced)},
              {"source", "written in place, without a source"}};
  }
}

}  // namespace

Json machine_in_place(const JsonReader& machine) {
  if (!machine.is_object()) {
    machine.fail(
        R"(expected the name of a machine, or changes to one: {"extends": "dgx-h100", "cluster": {...}})");
  }
  const JsonReader base = machine.at("extends");
  const NamedDocument named = find_profile(base.string(), machine.place().file, base.place());
  const Json whole = extended(named.document, named.file, longest_chain);
  Json document = machine.json();
  for (const char* section : {"device", "cluster", "torus"}) {
    const auto changes = document.find(section);
    if (changes == document.end() || !changes->is_object()) continue;
    add_sources(*changes, whole.contains(section) ? whole[section] : Json());
  }
  document["schema"] = whole["schema"];
  const std::string changed = " with changes";
  if (!document.contains("name")) document["name"] = whole["name"].get<std::string>() + changed;
  if (!document.contains("title")) document["title"] = whole["title"].get<std::string>() + changed;
  return document;
}

Json extended(const Json& document, const std::string& file) {
  return extended(document, file, longest_chain);
}

}  // namespace shardsim
