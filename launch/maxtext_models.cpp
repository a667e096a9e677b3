#include "launch/maxtext_models.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "launch/model_families.hpp"

namespace shardsim {
namespace {
namespace maxtext {

struct NamedModel {
  std::string_view name, model;
};
// configs/models of MaxText and the models that are shipped here.
constexpr NamedModel named_models[] = {{"llama2-7b", "llama-2-7b"},
                                       {"llama3-8b", "llama-3.1-8b"},
                                       {"llama3.1-8b", "llama-3.1-8b"},
                                       {"llama3-70b", "llama-3.1-70b"},
                                       {"llama3.1-70b", "llama-3.1-70b"},
                                       {"llama3.1-405b", "llama-3.1-405b"},
                                       {"llama4-17b-128e", "llama-4-maverick"},
                                       {"mistral-7b", "mistral-7b-v0.1"},
                                       {"mixtral-8x7b", "mixtral-8x7b"},
                                       {"qwen3-30b-a3b", "qwen3-30b-a3b"},
                                       {"qwen3-235b-a22b", "qwen3-235b-a22b"},
                                       {"gpt-oss-120b", "gpt-oss-120b"},
                                       {"deepseek3-671b", "deepseek-v3"},
                                       {"kimi-k2-1t", "kimi-k2"}};

// Facts of a decoder block beside its sizes; those that are not here have a config.json of their
// own.
struct Block {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> is;  // fact, JSON
  bool routed = false;
  bool gated = true;
};
const std::vector<Block>& blocks() {
  static const std::vector<Block> all = {{"llama2", {}},
                                         {"mistral", {}},
                                         {"qwen2", {{"model.qkv_bias", "true"}}},
                                         {"qwen3", {{"model.qk_norm", "true"}}},
                                         {"gpt3",
                                          {{"model.norm", R"("layer")"},
                                           {"model.positions", R"("learned")"},
                                           {"model.gated", "false"},
                                           {"model.activation", R"("gelu")"},
                                           {"model.bias", "true"}},
                                          /*routed=*/false,
                                          /*gated=*/false},
                                         {"mixtral", {}, true},
                                         {"qwen3_moe", {{"model.qk_norm", "true"}}, true},
                                         {"deepseek", {{"model.latent", "true"}}, true}};
  return all;
}

// Decoder blocks whose config.json has the sizes under their usual names, and what else they are.
struct OwnBlock {
  std::string_view name, model_type, architecture;
  std::string_view activations;  // JSON: as mlp_activations has to say it
  std::int64_t layers = 1;       // of config.json in one of MaxText's
  bool has_window = false, has_post_norms = false, has_sinks = false, routed = false;
  std::vector<std::pair<std::string_view, std::string_view>> constants = {};  // key, JSON
};
const std::vector<OwnBlock>& own_blocks() {
  static const std::vector<OwnBlock> all = {
      {"gemma", "gemma", "GemmaForCausalLM", R"(["gelu", "linear"])"},
      {.name = "gemma2",
       .model_type = "gemma2",
       .architecture = "Gemma2ForCausalLM",
       .activations = R"(["gelu", "linear"])",
       .layers = 2,  // one with a window and one without
       .has_window = true,
       .has_post_norms = true,
       .constants = {{"final_logit_softcapping", "30.0"}, {"attn_logit_softcapping", "50.0"}}},
      {.name = "gemma3",
       .model_type = "gemma3_text",
       .architecture = "Gemma3ForCausalLM",
       .activations = R"(["gelu", "linear"])",
       .has_window = true,
       .has_post_norms = true},
      {.name = "gpt_oss",
       .model_type = "gpt_oss",
       .architecture = "GptOssForCausalLM",
       .activations = R"(["sigmoid", "linear"])",
       .has_window = true,
       .has_sinks = true,
       .routed = true},
      {.name = "olmo3",
       .model_type = "olmo3",
       .architecture = "Olmo3ForCausalLM",
       .activations = R"(["silu", "linear"])",
       .has_window = true}};
  return all;
}

void require(const Facts& facts, std::string_view fact, const Json& expected,
             const OwnBlock& block) {
  if (facts.at(fact) == expected) return;
  facts.fail(fact, fmt::format("decoder block \"{}\" has {} there; name the model's config.json "
                               "with --model",
                               block.name, expected.dump()));
}

Json config_of(const OwnBlock& block, Facts& facts) {
  require(facts, "arg.activations", Json::parse(block.activations), block);
  require(facts, "arg.post_norms", block.has_post_norms, block);
  require(facts, "arg.sink", block.has_sinks, block);
  require(facts, "arg.mlp_bias", block.has_sinks, block);
  Json config = {{"architectures", {block.architecture}},
                 {"model_type", block.model_type},
                 {"hidden_size", facts.integer("arg.hidden")},
                 {"num_hidden_layers", block.layers * facts.integer("arg.layers")},
                 {"num_attention_heads", facts.integer("arg.heads")},
                 {"num_key_value_heads", facts.integer("arg.kv_heads")},
                 {"head_dim", facts.integer("arg.head_dim")},
                 {"intermediate_size", facts.integer("arg.width")},
                 {"vocab_size", facts.integer("model.vocab")},
                 {"tie_word_embeddings", facts.flag("model.tied")}};
  if (block.has_window) config["sliding_window"] = facts.integer("arg.window");
  if (block.routed) {
    config["num_local_experts"] = facts.integer("arg.experts");
    config["num_experts_per_tok"] = facts.integer("arg.top_k");
  }
  for (const auto& [key, json] : block.constants) config[std::string(key)] = Json::parse(json);
  return config;
}

void find_sizes(Facts& facts) {
  const std::int64_t scale = facts.integer("arg.scale");
  // pyconfig.py: the scale, a power of two, in parts of layers (2^(k/3)), width and heads.
  if (scale != 1) {
    facts.fail("arg.scale", "scaled models are not read: give the base_ dimensions themselves");
  }
  const std::pair<const char*, const char*> sizes[] = {{"arg.hidden", "model.hidden"},
                                                       {"arg.heads", "model.heads"},
                                                       {"arg.kv_heads", "model.kv_heads"},
                                                       {"arg.width", "model.width"},
                                                       {"arg.layers", "model.layers"}};
  for (const auto& [theirs, ours] : sizes) {
    facts.set(ours, facts.integer(theirs), facts.place(theirs), facts.given(theirs));
  }
}

Json model_of_sizes(Facts& facts) {
  const std::string name = facts.text("arg.block");
  const auto own = std::find_if(own_blocks().begin(), own_blocks().end(),
                                [&](const OwnBlock& one) { return one.name == name; });
  if (own != own_blocks().end()) {
    find_sizes(facts);
    return config_of(*own, facts);
  }
  const auto block = std::find_if(blocks().begin(), blocks().end(),
                                  [&](const Block& one) { return one.name == name; });
  if (block == blocks().end()) {
    std::vector<std::string_view> known;
    for (const Block& one : blocks()) known.push_back(one.name);
    for (const OwnBlock& one : own_blocks()) known.push_back(one.name);
    facts.fail("arg.block", fmt::format("decoder block \"{}\" is not made of its sizes here, {} "
                                        "are; name the model's config.json with --model",
                                        name, fmt::join(known, ", ")));
  }
  find_sizes(facts);
  for (const auto& [fact, json] : block->is) facts.set(fact, Json::parse(json));
  const Json activations = block->gated ? Json::array({"silu", "linear"}) : Json::array({"gelu"});
  if (facts.at("arg.activations") != activations) {
    facts.fail("arg.activations", fmt::format("of layers made of their sizes the activation is {}",
                                              activations.dump()));
  }
  for (const char* fact : {"arg.post_norms", "arg.sink", "arg.mlp_bias"}) {
    if (facts.flag(fact)) facts.fail(fact, "name the model's config.json with --model");
  }
  const std::int64_t positions = facts.integer("arg.positions", -1);
  if (block->gated && positions != -1) {
    facts.fail("arg.positions", "name the model's config.json with --model");
  }
  if (!block->gated) facts.set("model.positions_limit", positions);
  const bool latent = facts.flag("model.latent");
  if (!latent) facts.set("model.head_dim", facts.integer("arg.head_dim"));
  if (facts.is("arg.attention_type", "local_sliding")) {
    facts.set("model.window", facts.integer("arg.window"));
  }
  if (latent) {
    facts.set("model.kv_heads", facts.at("model.heads"));
    if (facts.integer("arg.q_rank", 0) > 0) facts.set("model.q_rank", facts.at("arg.q_rank"));
    for (const char* size : {"kv_rank", "nope_dim", "rope_dim", "value_dim"}) {
      facts.set(fmt::format("model.{}", size), facts.integer(fmt::format("arg.{}", size)));
    }
    if (facts.is("arg.scores", "sigmoid")) facts.set("model.scores", "sigmoid");
    facts.set("model.dense_layers", facts.integer("arg.dense_layers", 0));
  }
  if (block->routed) {
    facts.set("model.experts", facts.integer("arg.experts"));
    facts.set("model.top_k", facts.integer("arg.top_k"));
    // A mixture without latents has base_mlp_dim for its experts; both must be given equal.
    const char* width = facts.given("arg.expert_width") ? "arg.expert_width" : "arg.width";
    facts.set("model.expert_width", facts.integer(width));
    if (latent) {
      facts.set("model.shared_width",
                facts.integer("arg.shared_experts", 0) * facts.integer(width));
    }
  }
  return config_of_facts(facts);
}

}  // namespace maxtext
}  // namespace

Json maxtext_model(Facts& facts) {
  const std::string name = facts.text("arg.model");
  if (name == "default") return maxtext::model_of_sizes(facts);
  std::vector<std::string> known;
  for (const maxtext::NamedModel& model : maxtext::named_models) {
    if (model.name == name) return model.model;
    known.emplace_back(model.name);
  }
  facts.fail("arg.model",
             fmt::format("model \"{}\" is not shipped here, {} are; name its config.json with "
                         "--model",
                         name, fmt::join(known, ", ")),
             closest(name, known));
}

void add_maxtext_model_facts(const Json& model, const Json& config, const Place& place,
                             Facts& facts) {
  for (const maxtext::NamedModel& named : maxtext::named_models) {
    if (model.is_string() && model.get<std::string>() == named.model) {
      facts.set("arg.model", named.name);
      return;
    }
  }
  Facts found(facts.whole());
  add_model_facts(config, place, found);
  const std::string type = config.value("model_type", "");
  const std::pair<std::string_view, std::string_view> types[] = {
      {"llama", "llama2"},        {"mistral", "mistral"},     {"qwen3", "qwen3"},
      {"mixtral", "mixtral"},     {"qwen3_moe", "qwen3_moe"}, {"deepseek_v2", "deepseek"},
      {"deepseek_v3", "deepseek"}};
  const auto row = std::find_if(std::begin(types), std::end(types),
                                [&](const auto& one) { return one.first == type; });
  if (row == std::end(types)) {
    throw InputError(place, fmt::format("MaxText has no decoder block for \"{}\" here", type));
  }
  facts.set("arg.block", row->second);
  const std::pair<const char*, const char*> sizes[] = {{"model.hidden", "arg.hidden"},
                                                       {"model.heads", "arg.heads"},
                                                       {"model.width", "arg.width"},
                                                       {"model.layers", "arg.layers"},
                                                       {"model.vocab", "model.vocab"},
                                                       {"model.tied", "model.tied"},
                                                       {"model.experts", "arg.experts"},
                                                       {"model.top_k", "arg.top_k"},
                                                       {"model.expert_width", "arg.expert_width"},
                                                       {"model.dense_layers", "arg.dense_layers"},
                                                       {"model.q_rank", "arg.q_rank"},
                                                       {"model.kv_rank", "arg.kv_rank"},
                                                       {"model.nope_dim", "arg.nope_dim"},
                                                       {"model.rope_dim", "arg.rope_dim"},
                                                       {"model.value_dim", "arg.value_dim"}};
  for (const auto& [ours, theirs] : sizes) {
    if (found.has(ours)) facts.set(theirs, found.at(ours));
  }
  const std::int64_t heads = found.integer("model.heads");
  facts.set("arg.kv_heads", found.integer_or("model.kv_heads", heads));
  const bool latent = found.flag("model.latent");
  if (!latent) {
    facts.set("arg.head_dim",
              found.integer_or("model.head_dim", found.integer("model.hidden") / heads));
  } else {
    const std::int64_t width = found.integer_or("model.expert_width", 1);
    facts.set("arg.shared_experts", found.integer_or("model.shared_width", 0) / width);
    facts.set("arg.scores", found.is("model.scores", "sigmoid") ? "sigmoid" : "");
  }
  if (found.has("model.window")) {
    facts.set("arg.attention_type", "local_sliding");
    facts.set("arg.window", found.at("model.window"));
  }
}

}  // namespace shardsim
