#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "launch/formats/formats.hpp"

namespace shardsim {
namespace {

void add_object(const Json& object, const std::string& prefix, const Place& place,
                std::vector<Entry>& entries) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    const Place inner{place.file, place.pointer + "/" + key};
    if (value.is_object() && !value.empty()) {
      add_object(value, name + ".", inner, entries);
    } else {
      entries.push_back({name, name, OwnedJson(value), inner});
    }
  }
}

}  // namespace

KeyFile read_json_keys(const std::string& text, const std::string& file) {
  const Json document = parse_json(text, file);
  if (!document.is_object()) throw InputError({file, ""}, "expected an object");
  KeyFile read;
  add_object(document, "", {file, ""}, read.entries);
  return read;
}

std::string print_json_keys(const std::vector<WrittenKey>& keys, const FileHead&) {
  Json document = Json::object();
  for (const auto& [key, value] : keys) field_at(document, key) = *value;
  return document.dump(2) + "\n";
}

}  // namespace shardsim
