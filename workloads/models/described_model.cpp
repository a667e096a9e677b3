#include "workloads/models/described_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "workloads/models/config_reader.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/graph/decoder_graph.hpp"
#include "workloads/models/harmless_keys.hpp"
#include "workloads/models/walk.hpp"

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
  return key.ends_with("dropout") || key.ends_with("pdrop") || key.ends_with("layerdrop");
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
  if (is_rate_of_dropout(key)) return value.number() == 0;
  if (is_window(key)) {
    const auto used = json.find("use_sliding_window");
    return used && !used->boolean();
  }
  const std::vector<HarmlessValue>& values = harmless_values();
  return std::any_of(values.begin(), values.end(), [&](const HarmlessValue& harmless) {
    return harmless.key == key && value.json().dump() == harmless.value;
  });
}

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

// Rotary parameters may be given for each type of layer.
void refuse_partial_rotary(const JsonReader& json) {
  const auto part = json.find("partial_rotary_factor");
  if (part && part->number() != 1) part->fail("only 1 is supported");
  for (const auto& [key, value] : json.members()) {
    if (value.is_object()) refuse_partial_rotary(value);
  }
}

std::vector<std::string> dropout_notes(const models::AskedKeys& asked) {
  std::vector<std::string> notes;
  for (const models::AskedKeys::Rate& rate : asked.rates) {
    notes.push_back(fmt::format(
        "dropout is left out ({}{})", rate.key,
        rate.given ? "" : fmt::format(", {} where a file does not say it", rate.value)));
  }
  return notes;
}

// At the key that says how many positions there are.
void require_positions(const JsonReader& json, const models::ModelSpec& spec,
                       std::int64_t sequence) {
  const std::int64_t rows = models::most_positions(spec);
  if (sequence <= rows) return;
  const std::string message = fmt::format(
      "the model has {} positions, fewer than the sequence's {} tokens", rows, sequence);
  for (const char* key : {"n_positions", "max_position_embeddings"}) {
    if (const auto value = json.find(key)) value->fail(message);
  }
  json.fail(message);
}

}  // namespace

DescribedModel read_described(const ModelConfig& config) {
  const JsonReader json(*config.json, {config.path, ""});
  models::AskedKeys asked;
  DescribedModel model;
  model.spec = models::read_model(json, config.name, &asked);
  if (!models::is_decoder(model.spec)) return model;
  const ConfigReader reader(json, known_keys(json, asked));
  refuse_common(reader);
  const bool reads_part =
      std::count(asked.keys.begin(), asked.keys.end(), "partial_rotary_factor") > 0;
  if (!reads_part) refuse_partial_rotary(json);
  model.notes = dropout_notes(asked);
  const auto noise = json.find("router_jitter_noise");
  if (noise && noise->number() != 0) {
    model.notes.emplace_back("noise on what routers read is left out (router_jitter_noise)");
  }
  return model;
}

Workload build_described(const ModelConfig& config, const WorkloadOptions& options) {
  const JsonReader json(*config.json, {config.path, ""});
  const DescribedModel model = read_described(config);
  require_positions(json, model.spec, *options.sequence);
  Workload workload = models::build_decoder_graph(model.spec, options, json.place());
  workload.notes.insert(workload.notes.begin(), model.notes.begin(), model.notes.end());
  return workload;
}

}  // namespace shardsim
