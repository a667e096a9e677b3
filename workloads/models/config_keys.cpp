#include "workloads/models/config_keys.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "workloads/models/config_reader.hpp"
#include "workloads/models/harmless_keys.hpp"

namespace shardsim {
namespace {

std::vector<std::string> spellings(const std::string& keys) {
  std::vector<std::string> list;
  std::size_t begin = 0;
  for (std::size_t bar = keys.find('|'); bar != std::string::npos; bar = keys.find('|', begin)) {
    list.push_back(keys.substr(begin, bar - begin));
    begin = bar + 1;
  }
  list.push_back(keys.substr(begin));
  return list;
}

// A list of layers that are all alike asks for no other kind than the family has.
bool is_full_everywhere(const JsonReader& types) {
  const std::vector<JsonReader> layers = types.elements();
  return std::all_of(layers.begin(), layers.end(),
                     [](const JsonReader& layer) { return layer.string() == "full_attention"; });
}

bool is_window(const std::string& key) {
  return key == "sliding_window" || key == "max_window_layers";
}

bool is_rate_of_dropout(const std::string& key) {
  return key.ends_with("dropout") || key.ends_with("pdrop") || key.ends_with("layerdrop") ||
         key == "drop_path_rate";
}

// Files of some families have the activation twice, under names of which their class reads one.
bool is_second_activation(const JsonReader& json, const std::string& key) {
  const std::vector<std::string> names = {"hidden_act", "hidden_activation", "activation_function"};
  if (std::find(names.begin(), names.end(), key) == names.end()) return false;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name != key && json.find(name); });
}

// Whether a key that nobody asked for says the same as its absence.
bool says_nothing(const JsonReader& json, const std::string& key, const JsonReader& value) {
  if (value.json().is_null()) return true;
  if (key == "layer_types") return is_full_everywhere(value);
  if (key == "num_experts_per_tok") return true;  // of none: their number is another key
  if (is_second_activation(json, key)) return true;
  if (key.ends_with("_bias") && value.json().is_boolean()) return !value.boolean();
  if (is_rate_of_dropout(key) && value.json().is_number()) return value.number() == 0;
  if (is_window(key)) {
    const auto used = json.find("use_sliding_window");
    return used && !used->boolean();
  }
  const std::vector<HarmlessValue>& values = harmless_values();
  return std::any_of(values.begin(), values.end(), [&](const HarmlessValue& harmless) {
    return harmless.key == key && value.json().dump() == harmless.value;
  });
}

}  // namespace

std::vector<std::string> known_keys(const JsonReader& json, const models::AskedKeys& asked) {
  std::vector<std::string> known = common_config_keys();
  for (const std::string& keys : asked.keys) {
    for (std::string& key : spellings(keys)) known.push_back(std::move(key));
  }
  known.emplace_back("rope_parameters");
  known.emplace_back("partial_rotary_factor");
  for (const auto& [key, value] : json.members()) {
    if (says_nothing(json, key, value)) known.push_back(key);
  }
  return known;
}

namespace {

// Of what is passed over, too: transformers would not take it.
void require_numbers(const JsonReader& json) {
  for (const HarmlessKey& key : harmless_keys()) {
    const auto value = json.find(key.key);
    if (!value || !is_number(key)) continue;
    const bool is_word = value->json().is_string() || value->is_object();
    if (is_word) static_cast<void>(value->number());  // which says what was expected
  }
}

}  // namespace

void require_known_keys(const JsonReader& json, const models::AskedKeys& asked) {
  const ConfigReader reader(json, known_keys(json, asked));
  require_numbers(json);
  // A decoder beside an encoder has it; its reader asks for it then.
  const bool decodes =
      std::find(asked.keys.begin(), asked.keys.end(), "add_cross_attention") != asked.keys.end();
  if (!decodes) reader.refuse_true("add_cross_attention");
  reader.refuse_entries("pruned_heads");
  for (const models::NestedKeys& nested : asked.nested) {
    if (const auto inner = json.find(nested.key)) require_known_keys(*inner, nested.asked);
  }
}

models::ModelSpec read_known_model(const JsonReader& config, const std::string& name) {
  models::AskedKeys asked;
  models::ModelSpec spec = models::read_model(config, name, &asked);
  require_known_keys(config, asked);
  return spec;
}

}  // namespace shardsim
