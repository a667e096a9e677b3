#include "workloads/models/families/config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "workloads/layers/activation.hpp"
#include "workloads/models/families/nested_defaults.hpp"

namespace shardsim::models {
namespace {

// A hundred times the largest that any model has, and products of two can be added up.
constexpr std::int64_t largest_size = std::int64_t{1} << 24;
constexpr std::int64_t most_layers = 10'000;

std::string_view first_of(std::string_view keys) { return keys.substr(0, keys.find('|')); }

double share(const JsonReader& value) {
  const double share = value.number();
  if (share <= 0 || share > 1) value.fail("is no share, above 0 and at most 1");
  return share;
}

// Of rotary positions: a base, or which share of a head they turn.
double of_rotary(std::string_view key, const JsonReader& value) {
  return key == "rope_theta" ? value.number() : share(value);
}

}  // namespace

void Config::ask(std::string_view keys) const {
  if (asked_ == nullptr) return;
  std::vector<std::string>& known = asked_->keys;
  if (std::find(known.begin(), known.end(), keys) == known.end()) known.emplace_back(keys);
}

std::optional<JsonReader> Config::find(std::string_view keys) const {
  ask(keys);
  std::optional<JsonReader> found;
  std::optional<JsonReader> by_class;  // a default of the class
  std::string_view name;
  while (true) {
    const std::string key(first_of(keys));
    if (auto value = json_.find(key)) {
      // Two spellings that contradict: one of them is meant.
      if (found && asked_ != nullptr && found->json() != value->json()) {
        value->fail(fmt::format("is another name for \"{}\", which is there", name));
      }
      if (!found) {
        found = std::move(value);
        name = keys.substr(0, key.size());
        if (asked_ == nullptr) return found;
      }
    } else if (defaults_ != nullptr && defaults_->contains(key) && !json_.json().contains(key)) {
      by_class = JsonReader(defaults_->at(key), json_.place());
    }
    if (key.size() == keys.size()) return found ? found : by_class;
    keys.remove_prefix(key.size() + 1);
  }
}

std::int64_t Config::size(std::string_view keys) const {
  if (const auto value = find(keys)) return value->integer(1, largest_size);
  json_.fail(fmt::format("missing key \"{}\"", first_of(keys)));
}

std::int64_t Config::size(std::string_view keys, std::int64_t otherwise) const {
  const auto value = find(keys);
  return value ? value->integer(1, largest_size) : otherwise;
}

std::int64_t Config::needed(std::string_view keys, std::int64_t otherwise) const {
  return nested_ ? size(keys, otherwise) : size(keys);
}

std::optional<std::int64_t> Config::optional_size(std::string_view keys,
                                                  std::optional<std::int64_t> otherwise) const {
  if (const auto value = find(keys)) return value->integer(1, largest_size);
  return json_.json().contains(std::string(first_of(keys))) ? std::nullopt : otherwise;
}

std::int64_t Config::count(std::string_view keys, std::int64_t otherwise) const {
  const auto value = find(keys);
  return value ? value->integer(0, largest_size) : otherwise;
}

std::int64_t Config::integer(std::string_view keys, std::int64_t otherwise) const {
  const auto value = find(keys);
  return value ? value->integer(-largest_size, largest_size) : otherwise;
}

std::int64_t Config::layers(std::string_view keys, std::int64_t otherwise) const {
  if (const auto value = find(keys)) return value->integer(1, most_layers);
  return needed(keys, otherwise);
}

bool Config::flag(std::string_view keys, bool otherwise) const {
  const auto value = find(keys);
  return value ? value->boolean() : otherwise;
}

double Config::number(std::string_view keys, double otherwise) const {
  const auto value = find(keys);
  return value ? value->number() : otherwise;
}

// Scores are divided by it.
double Config::cap(std::string_view keys, double otherwise) const {
  if (const auto value = find(keys)) {
    if (value->number() <= 0) value->fail("has to be above 0, or null where there is none");
    return value->number();
  }
  return json_.json().contains(std::string(first_of(keys))) ? 0 : otherwise;
}

double Config::ratio(std::string_view keys, double otherwise) const {
  const auto value = find(keys);
  const double ratio = value ? value->number() : otherwise;
  if (value && (ratio <= 0 || ratio > 1000)) value->fail("has to be above 0 and at most 1000");
  return ratio;
}

double Config::rate(std::string_view keys, double otherwise) const {
  const auto value = find(keys);
  const double rate = value ? value->number() : otherwise;
  if (value && (rate < 0 || rate >= 1))
    value->fail(fmt::format("{} is not a rate from 0 to below 1", rate));
  return rate;
}

std::string Config::text(std::string_view keys, std::string_view otherwise) const {
  const auto value = find(keys);
  return value ? value->string() : std::string(otherwise);
}

std::string Config::choice(std::string_view keys, std::string_view otherwise,
                           const std::vector<std::string>& choices) const {
  const auto value = find(keys);
  return value ? value->choice(choices) : std::string(otherwise);
}

std::string Config::activation(std::string_view keys, std::string_view otherwise) const {
  const auto value = find(keys);
  return value ? value->choice(known_activations()) : std::string(otherwise);
}

std::vector<std::string> Config::texts(std::string_view keys) const {
  std::vector<std::string> result;
  if (const auto value = find(keys)) {
    for (const JsonReader& element : value->elements()) result.push_back(element.string());
  }
  return result;
}

std::vector<std::int64_t> Config::integers(std::string_view keys) const {
  std::vector<std::int64_t> result;
  if (const auto value = find(keys)) {
    for (const JsonReader& element : value->elements()) {
      result.push_back(element.integer(-largest_size, largest_size));
    }
  }
  return result;
}

void Config::pass_over(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) ask(key);
}

std::vector<std::int64_t> Config::sizes(std::string_view keys,
                                        std::vector<std::int64_t> otherwise) const {
  const auto value = find(keys);
  if (!value) return otherwise;
  std::vector<std::int64_t> result;
  for (const JsonReader& element : value->elements()) {
    result.push_back(element.integer(1, largest_size));
  }
  if (result.empty()) value->fail("is empty");
  return result;
}

std::optional<Config> Config::sub(std::string_view keys) const {
  const auto value = find(keys);
  if (!value) return std::nullopt;
  if (!value->is_object()) value->fail("expected an object");
  const std::string pointer = value->place().pointer;
  const std::string key = pointer.substr(pointer.rfind('/') + 1);
  const auto type_of = [](const JsonReader& json) {
    const auto type = json.find("model_type");
    return type && type->is_string() ? type->string() : std::string();
  };
  Config nested_config(*value, /*nested=*/true);
  nested_config.defaults_ = nested_defaults(type_of(json_) + "/" + key, type_of(*value));
  if (asked_ == nullptr) return nested_config;
  auto& nested = asked_->nested;
  auto known = std::find_if(nested.begin(), nested.end(),
                            [&](const NestedKeys& object) { return object.key == key; });
  if (known == nested.end()) known = nested.insert(nested.end(), NestedKeys{key, {}});
  nested_config.asked_ = &known->asked;
  return nested_config;
}

double Config::rotary_number(std::string_view key, double otherwise) const {
  ask(key);
  for (const char* holder : {"rope_parameters", "rope_scaling"}) {
    ask(holder);
    if (const auto object = json_.find(holder)) {
      if (!object->is_object()) object->fail("expected an object");
      if (const auto value = object->find(key)) return of_rotary(key, *value);
    }
  }
  const auto value = find(key);
  return value ? of_rotary(key, *value) : otherwise;
}

double Config::rotary_number(std::string_view type, std::string_view key, double otherwise) const {
  ask(key);
  ask("rope_parameters");
  if (const auto all = json_.find("rope_parameters"); all && all->is_object()) {
    if (const auto own = all->find(type); own && own->is_object()) {
      const auto value = own->find(key);
      return value ? of_rotary(key, *value) : otherwise;
    }
  }
  return rotary_number(key, otherwise);
}

std::int64_t Config::divided(std::string_view a_keys, std::int64_t a, std::string_view b_keys,
                             std::int64_t b) const {
  if (a % b != 0) {
    fail(a_keys, fmt::format("{} does not divide by {} {}{}", a, first_of(b_keys), b,
                             given(b_keys) ? "" : ", which the file does not say"));
  }
  return a / b;
}

void Config::fail(std::string_view keys, std::string_view message) const {
  if (const auto value = find(keys)) value->fail(message);
  json_.fail(fmt::format("{}: {}", first_of(keys), message));
}

}  // namespace shardsim::models
