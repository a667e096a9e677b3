#include "workloads/models/described_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "workloads/models/config_keys.hpp"
#include "workloads/models/config_reader.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/graph/model_graph.hpp"
#include "workloads/models/layer_loads.hpp"
#include "workloads/models/walk.hpp"

namespace shardsim {
namespace {

// A family that has no part of its own turns whole heads: of a model's objects each that its reader
// did not ask for the part.
void refuse_partial_rotary(const JsonReader& json, const models::AskedKeys& asked) {
  if (std::count(asked.keys.begin(), asked.keys.end(), "partial_rotary_factor") > 0) return;
  const auto part = json.find("partial_rotary_factor");
  if (part && part->number() != 1) part->fail("only 1 is supported");
  for (const auto& [key, value] : json.members()) {
    if (!value.is_object()) continue;
    const auto nested = std::find_if(asked.nested.begin(), asked.nested.end(),
                                     [&, name = key](const auto& n) { return n.key == name; });
    refuse_partial_rotary(value,
                          nested == asked.nested.end() ? models::AskedKeys{} : nested->asked);
  }
}

// Formats that frameworks train from by widening what a checkpoint holds.
void add_notes_of_storage(const JsonReader& json, std::vector<std::string>& notes) {
  if (const auto stored = json.find("quantization_config")) {
    notes.push_back(fmt::format(
        "the checkpoint's weights are stored as {}; the step is in the types of its precision",
        stored->at("quant_method").string()));
  }
  for (const char* key : {"attn_implementation", "_attn_implementation"}) {
    const auto attention = json.find(key);
    if (attention && attention->string() == "eager") {
      notes.push_back(fmt::format(
          "attention is the kernel of the strategy's \"kernels\", whatever {} says", key));
    }
  }
}

// At the key that says how many positions there are.
void require_positions(const JsonReader& json, const models::ModelSpec& spec,
                       std::int64_t sequence) {
  const std::int64_t rows = models::most_positions(spec);
  if (sequence <= rows) return;
  const std::string message = fmt::format(
      "the model has {} positions, fewer than the sequence's {} tokens", rows, sequence);
  const auto text = json.find("text_config");
  for (const char* key : {"n_positions", "max_position_embeddings"}) {
    if (const auto value = json.find(key)) value->fail(message);
    if (!text || !text->is_object()) continue;
    if (const auto value = text->find(key)) value->fail(message);
  }
  json.fail(message);
}

// Of one object that says how positions are scaled.
double scaled_positions(const Json& rope, double most) {
  std::string type = "default";
  for (const char* key : {"type", "rope_type"}) {
    const auto said = rope.find(key);
    if (said != rope.end() && said->is_string()) type = said->get<std::string>();
  }
  const auto factor = rope.find("factor");
  if (factor == rope.end() || !factor->is_number() || type == "default" || type == "su" ||
      type == "longrope" || type == "llama3") {
    return most;
  }
  const auto original = rope.find("original_max_position_embeddings");
  const bool has_original = original != rope.end() && original->is_number();
  return (type == "yarn" && has_original ? original->get<double>() : most) * factor->get<double>();
}

// As many as vLLM derives of a config.json (config/model.py, _get_and_verify_max_len): scaled by
// the factor of rotary positions, of any type of layer.
double trained_positions(const JsonReader& config, double most) {
  double longest = most;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = config.find(key);
    if (!rope || !rope->is_object()) continue;
    longest = std::max(longest, scaled_positions(rope->json(), most));
    for (const auto& [type, of_layers] : rope->json().items()) {
      if (of_layers.is_object()) longest = std::max(longest, scaled_positions(of_layers, most));
    }
  }
  const auto tokens = config.find("model_max_length");
  if (tokens && tokens->json().is_number()) {
    longest = std::max(longest, tokens->json().get<double>());
  }
  return longest;
}

// Rotary positions go on behind those that a model was trained on, its answers do not: vLLM refuses
// a length that config.json does not have.
void require_trained_positions(const JsonReader& json, const TokenCache& cache) {
  const auto text = json.find("text_config");
  for (const JsonReader& config : {json, text && text->is_object() ? *text : json}) {
    const auto positions = config.find("max_position_embeddings");
    if (!positions || !positions->json().is_number_integer()) continue;
    const double most = trained_positions(config, positions->json().get<double>());
    if (static_cast<double>(cache.places) <= most) continue;
    positions->fail(fmt::format(
        "{} tokens are more than the model's {:.0f} positions, which vLLM refuses; a model that "
        "goes further says so here, {{\"base\": ..., \"max_position_embeddings\": {}}}",
        cache.places, most, cache.places));
  }
}

void note_positions(const JsonReader& json, std::int64_t tokens, std::vector<std::string>& notes) {
  const auto positions = json.find("max_position_embeddings");
  if (!positions || !positions->json().is_number_integer()) return;
  const auto most = positions->json().get<std::int64_t>();
  if (tokens <= most) return;
  notes.push_back(fmt::format(
      "{} tokens are more than the model's {} positions (max_position_embeddings): Megatron-LM "
      "refuses them unless --max-position-embeddings says more",
      tokens, most));
}

// An encoder's positions and its decoder's are as many.
std::int64_t longest(const WorkloadOptions& options) {
  if (!options.cache) return std::max(*options.sequence, options.target.value_or(0));
  return options.target ? std::max(*options.sequence, options.cache->places)
                        : options.cache->places;
}

}  // namespace

DescribedModel read_described(const ModelConfig& config) {
  const JsonReader json(*config.json, {config.path, ""});
  models::AskedKeys asked;
  DescribedModel model;
  model.spec = models::read_model(json, config.name, &asked);
  const ConfigReader reader(json, known_keys(json, asked));
  refuse_common(reader);
  refuse_partial_rotary(json, asked);
  add_notes_of_storage(json, model.notes);
  const auto noise = json.find("router_jitter_noise");
  if (noise && noise->number() != 0) {
    model.notes.emplace_back("noise on what routers read is left out (router_jitter_noise)");
  }
  return model;
}

Workload build_described(const ModelConfig& config, const WorkloadOptions& options) {
  const JsonReader json(*config.json, {config.path, ""});
  DescribedModel model = read_described(config);
  if (options.exchange && !options.exchange->rows_of_layer.empty()) {
    models::set_layer_loads(model.spec, *options.exchange);
  }
  if (models::reads_tokens(model.spec)) {
    require_positions(json, model.spec, longest(options));
  }
  if (options.cache) require_trained_positions(json, *options.cache);
  if (!options.cache && models::reads_tokens(model.spec)) {
    note_positions(json, longest(options), model.notes);
  }
  Workload workload = models::build_graph(model.spec, options, json.place());
  workload.notes.insert(workload.notes.begin(), model.notes.begin(), model.notes.end());
  return workload;
}

}  // namespace shardsim
