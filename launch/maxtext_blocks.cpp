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
                       {"arg.rotary_fraction", "1.0"}, {"arg.temperature_tuning", "false"}};
const std::vector<BlockKey> sizes = {
    {"hidden_size", "arg.hidden"},        {"num_hidden_layers", "arg.layers"},
    {"num_attention_heads", "arg.heads"}, {"num_key_value_heads", "arg.kv_heads"},
    {"head_dim", "arg.head_dim"},         {"vocab_size", "model.vocab"},
    {"tie_word_embeddings", "model.tied"}};

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

const std::vector<OwnBlock>& table() {
  static const std::vector<OwnBlock> rows = [] {
    std::vector<OwnBlock> all = dense_blocks();
    for (OwnBlock& block : routed_blocks()) all.push_back(std::move(block));
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
  return find_block([&](const OwnBlock& one) { return one.model_type == type; });
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
  const bool may_be_none = fact == "arg.chunk" || fact == "arg.window";
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
  return config;
}

bool has_maxtext_block(const Json& config) { return block_of(config) != nullptr; }

void add_maxtext_block_facts(const Json& config, const Place& place, Facts& facts) {
  const OwnBlock& block = *block_of(config);
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
