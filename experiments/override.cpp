#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "experiments/experiment.hpp"

#include "base/json.hpp"

namespace shardsim {
namespace {

constexpr std::size_t most_keys = 32;  // an experiment has fewer levels

std::vector<std::string> split(const std::string& path, const Place& place) {
  std::vector<std::string> keys;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t dot = std::min(path.find('.', at), path.size());
    keys.push_back(path.substr(at, dot - at));
    if (keys.back().empty()) {
      throw InputError(place, "expected names with dots between, for example workload.batch");
    }
    at = dot + 1;
  }
  if (keys.size() > most_keys) {
    throw InputError(place, fmt::format("more than {} names with dots between", most_keys));
  }
  return keys;
}

void require_utf8(const std::string& text, std::string_view what, const Place& place) {
  try {
    static_cast<void>(Json(text).dump());
  } catch (const Json::exception&) {
    throw InputError(place, fmt::format("the {} is not valid UTF-8", what));
  }
}

// JSON where it is JSON, else the text itself: --set machine=dgx-h100 needs no quotes.
Json read_value(const std::string& value, const Place& place) {
  // As files are read: no deeper, and no key twice.
  if (Json::accept(value))
    return parse_json(value, fmt::format("{}: {}", place.file, place.pointer));
  require_utf8(value, "value", place);
  return value;
}

Json& element(Json& list, const std::string& key, const Place& place) {
  std::size_t index = 0;
  const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (status != std::errc{} || end != key.data() + key.size() || index >= list.size()) {
    throw InputError(place, fmt::format("\"{}\" is no index into a list of {}", key, list.size()));
  }
  return list[index];
}

void assign(Json& document, const std::vector<std::string>& keys, const Json& value,
            const Place& place) {
  Json* at = &document;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (at->is_null()) *at = Json::object();
    // A strategy by its name is short for an object with that name.
    if (i == 1 && keys[0] == "strategy" && at->is_string()) *at = Json{{"name", *at}};
    if (at->is_array()) {
      at = &element(*at, keys[i], place);
    } else if (at->is_object()) {
      at = &(*at)[keys[i]];
    } else {
      throw InputError(place, fmt::format("nothing lies inside {}", at->dump()));
    }
  }
  *at = value;
}

}  // namespace

void apply_override(Json& document, const std::string& path, const std::string& value) {
  const Place place{"--set", path};
  require_utf8(path, "path", place);
  const std::vector<std::string> keys = split(path, place);
  const Json json = read_value(value, place);
  const bool has_variants = document.is_object() && document.contains("variants") &&
                            document["variants"].is_array() && keys[0] != "variants";
  assign(document, keys, json, place);
  if (!has_variants || keys[0] == "name") return;
  for (Json& variant : document["variants"]) {
    if (variant.is_object() && variant.contains(keys[0])) assign(variant, keys, json, place);
  }
}

}  // namespace shardsim
