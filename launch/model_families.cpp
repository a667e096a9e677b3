#include "launch/model_families.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json.hpp"
#include "launch/model_family_rows.hpp"

namespace shardsim {
namespace {

// Of dimensions that follow from others.
Json derived(const Facts& facts, std::string_view fact) {
  if (fact == "model.kv_heads") return facts.get("model.heads");
  if (fact == "model.expert_width") return facts.get("model.width");
  if (fact == "model.head_dim" && facts.has("model.heads") && facts.has("model.hidden")) {
    const std::int64_t heads = facts.integer("model.heads");
    const std::int64_t hidden = facts.integer("model.hidden");
    return hidden % heads == 0 ? Json(hidden / heads) : Json();
  }
  for (const auto& [name, json] : neutral_facts()) {
    if (name == fact) return Json::parse(json);
  }
  return Json();
}

Json value_of(const Facts& facts, std::string_view fact) {
  return facts.has(fact) ? facts.at(fact) : derived(facts, fact);
}

bool has_key(const FamilyRow& row, std::string_view fact) {
  return std::any_of(row.keys.begin(), row.keys.end(),
                     [&](const ModelKey& key) { return key.fact == fact; });
}

std::string fact_text(std::string_view fact, const Json& value) {
  return fmt::format("{} {}", fact.substr(std::string_view("model.").size()),
                     value.is_string() ? value.get<std::string>() : value.dump());
}

// What the facts say that the family is not.
std::vector<std::string> differences(const FamilyRow& row, const Facts& facts) {
  std::vector<std::string> found;
  for (const auto& [fact, json] : row.is) {
    const Json value = value_of(facts, fact);
    if (value != Json::parse(json)) found.push_back(fact_text(fact, value));
  }
  for (const auto& [name, fact] : facts.all()) {
    if (!name.starts_with("model.") || fact.value->is_null() || has_key(row, name)) continue;
    const bool is_said = std::any_of(row.is.begin(), row.is.end(),
                                     [&key = name](const auto& one) { return one.first == key; });
    if (!is_said && *fact.value != derived(facts, name)) {
      found.push_back(fact_text(name, *fact.value));
    }
  }
  // A mixture's keys are there to be said.
  for (const ModelKey& key : row.keys) {
    const bool lacks = key.fact == "model.experts" && !facts.has(key.fact);
    if (lacks && !row.may_lack_experts) found.emplace_back("no experts");
  }
  return found;
}

Json config_in(const FamilyRow& row, const Facts& facts) {
  Json config = {{"architectures", {row.architecture}}, {"model_type", row.model_type}};
  for (const ModelKey& key : row.keys) {
    Json value = value_of(facts, key.fact);
    if (!key.per.empty() && !value.is_null()) {
      const Json unit = value_of(facts, key.per);
      const std::int64_t whole = value.get<std::int64_t>(), part = unit.get<std::int64_t>();
      if (whole % part != 0) {
        facts.fail(key.fact, fmt::format("{} is no multiple of an expert's {}", whole, part));
      }
      value = whole / part;
    }
    if (value.is_null() && key.otherwise.empty()) continue;
    const std::string name(key.key);
    if (config.contains(name) && config[name] != value) {
      facts.fail(key.fact, fmt::format("of {} experts and those that all tokens visit are of one "
                                       "width, {}",
                                       row.model_type, config[name].dump()));
    }
    config[name] = value;
  }
  for (const auto& [key, json] : row.constants) config[std::string(key)] = Json::parse(json);
  return config;
}

}  // namespace

std::vector<std::string> launched_families() {
  std::vector<std::string> names;
  for (const FamilyRow& row : family_rows()) names.emplace_back(row.model_type);
  return names;
}

Json config_of_facts(const Facts& facts) {
  for (const std::string_view size : {"layers", "hidden", "heads", "vocab"}) {
    const std::string name = fmt::format("model.{}", size);
    if (!facts.has(name)) facts.fail(name, fmt::format("does not say the model's {}", size));
    (void)facts.integer(name);
  }
  const FamilyRow* nearest = nullptr;
  std::vector<std::string> lacks;
  for (const FamilyRow& row : family_rows()) {
    const std::vector<std::string> found = differences(row, facts);
    if (found.empty()) return config_in(row, facts);
    if (nearest == nullptr || found.size() < lacks.size()) {
      nearest = &row;
      lacks = found;
    }
  }
  throw InputError(facts.whole(),
                   fmt::format("no family of models that can be imported is like this one: {} is "
                               "nearest, but for {}; name its config.json with --model",
                               nearest->model_type, fmt::join(lacks, ", ")));
}

void add_model_facts(const Json& config, const Place& place, Facts& facts) {
  const std::string type = config.value("model_type", "");
  const auto row = std::find_if(family_rows().begin(), family_rows().end(),
                                [&](const FamilyRow& one) { return one.model_type == type; });
  if (row == family_rows().end()) {
    throw InputError(place, fmt::format("a model of type \"{}\" cannot be written; known are {}",
                                        type, fmt::join(launched_families(), ", ")));
  }
  for (const auto& [fact, json] : row->is) facts.set(fact, Json::parse(json));
  for (const ModelKey& key : row->keys) {
    const auto given = config.find(std::string(key.key));
    Json value = given != config.end() ? *given : Json();
    if (given == config.end() && !key.otherwise.empty()) value = Json::parse(key.otherwise);
    if (value.is_null()) continue;
    if (!key.per.empty()) {
      value = value.get<std::int64_t>() * value_of(facts, key.per).get<std::int64_t>();
    }
    if (value != derived(facts, key.fact)) facts.set(key.fact, value);
  }
  // Mixtures alone have experts' widths.
  if (!facts.has("model.experts")) facts.erase("model.expert_width");
}

}  // namespace shardsim
