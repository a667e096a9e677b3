#include "launch/maxtext_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.hpp"

namespace shardsim {
namespace {

using Known = std::vector<std::pair<std::string_view, std::string_view>>;

struct BlockKey {
  std::string_view key;   // of config.json
  std::string_view fact;  // of MaxText's file
};

struct OwnBlock {
  std::string_view name, model_type, architecture;
  Known is;  // facts, as JSON, that the file has to say
  std::vector<BlockKey> keys;
  std::int64_t layers = 1;  // of config.json in one of MaxText's
  Known constants = {};     // keys, as JSON
};

// What a block has unless its row says otherwise.
const Known neutral = {{"arg.post_norms", "false"},    {"arg.sink", "false"},
                       {"arg.mlp_bias", "false"},      {"arg.uses_index", "false"},
                       {"arg.rotary_fraction", "1.0"}, {"arg.temperature_tuning", "false"},
                       {"arg.global_dim", "0"},        {"arg.global_kv_heads", "0"},
                       {"arg.shares_kv", "false"},     {"arg.per_layer", "0"},
                       {"arg.kv_shared_layers", "0"},  {"arg.double_wide", "false"}};
const std::vector<BlockKey> sizes = {
    {"hidden_size", "arg.hidden"},        {"num_hidden_layers", "arg.layers"},
    {"num_attention_heads", "arg.heads"}, {"num_key_value_heads", "arg.kv_heads"},
    {"head_dim", "arg.head_dim"},         {"vocab_size", "model.vocab"},
    {"tie_word_embeddings", "model.tied"}};

constexpr std::string_view gemma4_type = "gemma4_text";
constexpr const char* per_layer_key = "hidden_size_per_layer_input";
constexpr std::int64_t layers_of_e2b = 35;
constexpr std::int64_t width_of_e2b = 1536;

bool is_small_gemma4(const Json& config) { return config.value(per_layer_key, 256) > 0; }

constexpr std::string_view gelu = R"(["gelu", "linear"])";
constexpr std::string_view silu = R"(["silu", "linear"])";

const BlockKey width = {"intermediate_size", "arg.width"};
const BlockKey window = {"sliding_window", "arg.window"};
const BlockKey top_k = {"num_experts_per_tok", "arg.top_k"};
// Of Qwen's hybrids the cycle of layers ends with the one that attends (layers/qwen3.py).
const std::vector<BlockKey> hybrid = {{"full_attention_interval", "arg.cycle"},
                                      {"partial_rotary_factor", "arg.rotary_fraction"},
                                      {"linear_num_key_heads", "arg.delta_key_heads"},
                                      {"linear_key_head_dim", "arg.delta_key_dim"},
                                      {"linear_num_value_heads", "arg.delta_value_heads"},
                                      {"linear_value_head_dim", "arg.delta_value_dim"},
                                      {"linear_conv_kernel_dim", "arg.delta_kernel"},
                                      {"num_experts", "arg.experts"},
                                      {"moe_intermediate_size", "arg.expert_width"},
                                      {"shared_expert_intermediate_size", "arg.expert_width"},
                                      top_k};

std::vector<BlockKey> with_width(std::vector<BlockKey> keys) {
  keys.push_back(width);
  return keys;
}

// models/*.py of maxtext 0.2.5, read 2026-11-26.
std::vector<OwnBlock> dense_blocks() {
  return {{"gemma", "gemma", "GemmaForCausalLM", {{"arg.activations", gelu}}, {width}},
          {"gemma2",
           "gemma2",
           "Gemma2ForCausalLM",
           {{"arg.activations", gelu}, {"arg.post_norms", "true"}},
           {width, window},
           /*layers=*/2,  // one with a window and one without
           {{"final_logit_softcapping", "30.0"}, {"attn_logit_softcapping", "50.0"}}},
          {"gemma3",
           "gemma3_text",
           "Gemma3ForCausalLM",
           {{"arg.activations", gelu}, {"arg.post_norms", "true"}},
           {width, window}},
          {"olmo3", "olmo3", "Olmo3ForCausalLM", {{"arg.activations", silu}}, {width, window}}};
}

std::vector<OwnBlock> routed_blocks() {
  return {{"gpt_oss",
           "gpt_oss",
           "GptOssForCausalLM",
           {{"arg.activations", R"(["sigmoid", "linear"])"},
            {"arg.sink", "true"},
            {"arg.mlp_bias", "true"}},
           {width, window, {"num_local_experts", "arg.experts"}, top_k}},
          {"llama4",
           "llama4_text",
           "Llama4ForCausalLM",
           {{"arg.activations", silu}, {"arg.shared_experts", "1"}},
           {{"intermediate_size", "arg.expert_width"},
            {"intermediate_size_mlp", "arg.width"},
            {"num_local_experts", "arg.experts"},
            top_k,
            {"interleave_moe_layer_step", "arg.routed_step"},
            {"no_rope_layer_interval", "arg.nope_interval"},
            {"attention_chunk_size", "arg.chunk"},
            {"use_qk_norm", "model.qk_norm"},
            {"attn_temperature_tuning", "arg.temperature_tuning"}}},
          {"qwen3_next",
           "qwen3_next",
           "Qwen3NextForCausalLM",
           {{"arg.activations", silu}, {"arg.shared_experts", "1"}},
           with_width(hybrid),
           /*layers=*/1,
           {{"norm_topk_prob", "true"}}},
          {"qwen3_5",
           "qwen3_5_moe_text",
           "Qwen3_5MoeForCausalLM",
           {{"arg.activations", silu}, {"arg.shared_experts", "1"}},
           hybrid}};
}

// models/gemma4.py and gemma4_small.py, read 2026-11-28.
std::vector<OwnBlock> gemma4_blocks() {
  const BlockKey full_width = {"global_head_dim", "arg.global_dim"};
  return {{"gemma4",
           gemma4_type,
           "Gemma4ForCausalLM",
           {{"arg.activations", gelu}, {"arg.post_norms", "true"}},
           {width,
            window,
            full_width,
            {"num_global_key_value_heads", "arg.global_kv_heads"},
            {"attention_k_eq_v", "arg.shares_kv"},
            {"num_experts", "arg.experts"},
            {"top_k_experts", "arg.top_k"},
            {"moe_intermediate_size", "arg.expert_width"}},
           /*layers=*/1,
           {{"final_logit_softcapping", "30.0"},
            {"hidden_size_per_layer_input", "0"},
            {"num_kv_shared_layers", "0"}}},
          {"gemma4_small",
           gemma4_type,
           "Gemma4ForCausalLM",
           {{"arg.activations", gelu}, {"arg.post_norms", "true"}},
           {width,
            window,
            full_width,
            {per_layer_key, "arg.per_layer"},
            {"vocab_size_per_layer_input", "arg.per_layer_vocab"},
            {"num_kv_shared_layers", "arg.kv_shared_layers"},
            {"use_double_wide_mlp", "arg.double_wide"}},
           /*layers=*/1,
           {{"final_logit_softcapping", "30.0"}}}};
}

// What of a Gemma 4 follows: a mixture where there are several experts, and which layers attend to
// all tokens (gemma4_small.py: every fifth of E2B, which is known by its sizes, else every sixth).
void finish_gemma4(Json& config) {
  if (config.value("num_global_key_value_heads", 0) == 0)
    config.erase("num_global_key_value_heads");
  const bool routed = config.value("num_experts", 1) > 1;
  if (routed) config["enable_moe_block"] = true;
  if (!routed) {
    for (const char* key : {"num_experts", "top_k_experts", "moe_intermediate_size"}) {
      config.erase(key);
    }
  }
  const std::int64_t layers = config["num_hidden_layers"];
  if (!is_small_gemma4(config)) return;
  const bool is_e2b = layers == layers_of_e2b && config["hidden_size"] == width_of_e2b;
  const std::int64_t period = is_e2b ? 5 : 6;
  for (std::int64_t i = 1; i <= layers; ++i) {
    config["layer_types"].push_back(i % period == 0 ? "full_attention" : "sliding_attention");
  }
}

// The other way: what a config.json leaves to its class.
Json with_gemma4_defaults(Json config) {
  const std::pair<const char*, Json> otherwise[] = {{"num_global_key_value_heads", 0},
                                                    {"attention_k_eq_v", false},
                                                    {"num_experts", 1},
                                                    {"top_k_experts", 1},
                                                    {"moe_intermediate_size", 1},
                                                    {"use_double_wide_mlp", false},
                                                    {"global_head_dim", 512},
                                                    {"num_kv_shared_layers", 0},
                                                    {per_layer_key, 256},
                                                    {"vocab_size_per_layer_input", 262'144},
                                                    {"tie_word_embeddings", true}};
  for (const auto& [key, value] : otherwise) {
    if (!config.contains(key) || config[key].is_null()) config[key] = value;
  }
  return config;
}

const std::vector<OwnBlock>& table() {
  static const std::vector<OwnBlock> rows = [] {
    std::vector<OwnBlock> all = dense_blocks();
    for (OwnBlock& block : routed_blocks()) all.push_back(std::move(block));
    for (OwnBlock& block : gemma4_blocks()) all.push_back(std::move(block));
    return all;
  }();
  return rows;
}

template <class Is>
const OwnBlock* find_block(Is is) {
  const auto found = std::find_if(table().begin(), table().end(), is);
  return found == table().end() ? nullptr : &*found;
}

const OwnBlock* block_named(std::string_view name) {
  return find_block([&](const OwnBlock& one) { return one.name == name; });
}

const OwnBlock* block_of(const Json& config) {
  const std::string type = config.value("model_type", "");
  return find_block([&](const OwnBlock& one) {
    const bool fits = one.model_type == type;
    return fits && (type != gemma4_type || (one.name == "gemma4") != is_small_gemma4(config));
  });
}

std::vector<BlockKey> keys_of(const OwnBlock& block) {
  std::vector<BlockKey> keys = sizes;
  keys.insert(keys.end(), block.keys.begin(), block.keys.end());
  return keys;
}

void require(const Facts& facts, std::string_view fact, std::string_view json,
             const OwnBlock& block) {
  const Json expected = Json::parse(json);
  if (facts.get(fact) == expected) return;
  facts.fail(fact, fmt::format("decoder block \"{}\" has {} there; name the model's config.json "
                               "with --model",
                               block.name, expected.dump()));
}

// Numbers are sizes, but for those that say "none".
Json value_in(const Facts& facts, std::string_view fact) {
  if (fact == "arg.nope_interval" && facts.at(fact) == -1) return facts.integer("arg.layers") + 1;
  const Json& value = facts.at(fact);
  const bool may_be_none = fact == "arg.chunk" || fact == "arg.window" ||
                           fact == "arg.global_kv_heads" || fact == "arg.kv_shared_layers";
  if (fact == "arg.expert_width" && value == -1) return facts.integer("arg.width");
  return value.is_number_integer() ? Json(facts.integer(fact, may_be_none ? 0 : 1)) : value;
}

}  // namespace

bool is_maxtext_block(std::string_view name) { return block_named(name) != nullptr; }

std::vector<std::string> maxtext_block_names() {
  std::vector<std::string> names;
  for (const OwnBlock& block : table()) names.emplace_back(block.name);
  return names;
}

Json config_of_maxtext_block(const Facts& facts) {
  const OwnBlock& block = *block_named(facts.text("arg.block"));
  const std::vector<BlockKey> keys = keys_of(block);
  for (const auto& [fact, json] : block.is) require(facts, fact, json, block);
  for (const auto& [name, json] : neutral) {
    const std::string_view fact = name;
    const bool is_said = std::any_of(block.is.begin(), block.is.end(),
                                     [&](const auto& one) { return one.first == fact; }) ||
                         std::any_of(keys.begin(), keys.end(),
                                     [&](const BlockKey& key) { return key.fact == fact; });
    if (!is_said) require(facts, fact, json, block);
  }
  Json config = {{"architectures", {block.architecture}}, {"model_type", block.model_type}};
  for (const BlockKey& key : keys) config[std::string(key.key)] = value_in(facts, key.fact);
  const std::int64_t layers = config["num_hidden_layers"];
  config["num_hidden_layers"] = block.layers * layers;
  for (const auto& [key, json] : block.constants) config[std::string(key)] = Json::parse(json);
  if (block.model_type == gemma4_type) finish_gemma4(config);
  return config;
}

bool has_maxtext_block(const Json& config) { return block_of(config) != nullptr; }

void add_maxtext_block_facts(const Json& given, const Place& place, Facts& facts) {
  const OwnBlock& block = *block_of(given);
  const Json config = block.model_type == gemma4_type ? with_gemma4_defaults(given) : given;
  facts.set("arg.block", block.name);
  for (const auto& [fact, json] : block.is) facts.set(fact, Json::parse(json));
  for (const BlockKey& key : keys_of(block)) {
    const auto value = config.find(std::string(key.key));
    if (value == config.end() || value->is_null()) {
      throw InputError(place, fmt::format("MaxText's decoder block \"{}\" needs {}, which the "
                                          "model's config.json leaves out",
                                          block.name, key.key));
    }
    if (facts.has(key.fact) && facts.at(key.fact) != *value) {
      throw InputError(place, fmt::format("MaxText's decoder block \"{}\" has no {} of its own",
                                          block.name, key.key));
    }
    facts.set(key.fact, *value);
  }
  const std::int64_t layers = facts.integer("arg.layers");
  if (layers % block.layers != 0) {
    throw InputError(place, fmt::format("MaxText's decoder block \"{}\" is {} layers, of which {} "
                                        "are no multiple",
                                        block.name, block.layers, layers));
  }
  facts.set("arg.layers", layers / block.layers);
}

}  // namespace shardsim
