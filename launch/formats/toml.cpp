#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/json.hpp"
#include "launch/formats/formats.hpp"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace shardsim {
namespace {

constexpr int deepest_toml = 100;

Json json_of(const toml::node& node, int depth) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  Json json = node.is_array() ? Json::array() : Json::object();
  if (const auto* array = node.as_array(); array != nullptr && depth < deepest_toml) {
    for (const toml::node& one : *array) json.push_back(json_of(one, depth + 1));
  } else if (const auto* table = node.as_table(); table != nullptr && depth < deepest_toml) {
    for (const auto& [key, one] : *table) json[std::string(key.str())] = json_of(one, depth + 1);
  } else if (!node.is_array() && !node.is_table()) {  // a date or a time
    std::ostringstream text;
    node.visit([&](const auto& value) { text << value; });
    return text.str();
  }
  return json;
}

void add_table(const toml::table& table, const std::string& prefix, const std::string& file,
               int depth, std::vector<Entry>& entries) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table(); inner != nullptr && depth < deepest_toml) {
      add_table(*inner, name + ".", file, depth + 1, entries);
      continue;
    }
    entries.push_back({name,
                       name,
                       OwnedJson(json_of(node, depth)),
                       {file, fmt::format("line {}: {}", node.source().begin.line, name)}});
  }
}

}  // namespace

KeyFile read_toml(const std::string& text, const std::string& file) {
  try {
    const toml::table table = toml::parse(text, file);
    KeyFile read;
    add_table(table, "", file, 0, read.entries);
    std::stable_sort(read.entries.begin(), read.entries.end(),
                     [](const Entry& a, const Entry& b) { return a.key < b.key; });
    return read;
  } catch (const toml::parse_error& error) {
    throw InputError({file, fmt::format("line {}", error.source().begin.line)},
                     fmt::format("this is no TOML: {}", error.description()));
  }
}

std::string print_toml(const std::vector<WrittenKey>& keys, const FileHead& head) {
  std::string text;
  for (const std::string& line : head.lines) text += "# " + line + "\n";
  // Sections in the order of their first keys, each once.
  std::vector<std::string> sections;
  for (const WrittenKey& key : keys) {
    const std::string section = key.key.substr(0, key.key.rfind('.'));
    if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      sections.push_back(section);
    }
  }
  for (const std::string& section : sections) {
    text += fmt::format("\n[{}]\n", section);
    for (const auto& [key, value] : keys) {
      if (key.substr(0, key.rfind('.')) != section) continue;
      text += fmt::format("{} = {}\n", key.substr(key.rfind('.') + 1), value->dump());
    }
  }
  return text;
}

}  // namespace shardsim
