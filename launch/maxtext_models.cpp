#include "launch/maxtext_models.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/maxtext_blocks.hpp"
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

// Facts of a decoder block beside its sizes; of the others see maxtext_blocks.hpp.
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

// What layers made of their sizes do not have.
void refuse_others(const Block& block, const Facts& facts) {
  const Json activations = block.gated ? Json::array({"silu", "linear"}) : Json::array({"gelu"});
  if (facts.at("arg.activations") != activations) {
    facts.fail("arg.activations", fmt::format("of layers made of their sizes the activation is {}",
                                              activations.dump()));
  }
  const auto refuse = [&](const char* fact) {
    facts.fail(fact, "name the model's config.json with --model");
  };
  for (const char* fact :
       {"arg.post_norms", "arg.sink", "arg.mlp_bias", "arg.shares_kv", "arg.double_wide"}) {
    if (facts.flag(fact)) refuse(fact);
  }
  for (const char* fact :
       {"arg.global_dim", "arg.global_kv_heads", "arg.per_layer", "arg.kv_shared_layers"}) {
    if (facts.integer(fact, 0) > 0) refuse(fact);
  }
  if (facts.number("arg.rotary_fraction") != 1) refuse("arg.rotary_fraction");
  if (block.gated && facts.integer("arg.positions", -1) != -1) refuse("arg.positions");
}

void find_latent(Facts& facts) {
  const auto take = [&](std::initializer_list<const char*> sizes) {
    for (const char* size : sizes) {
      facts.set(fmt::format("model.{}", size), facts.integer(fmt::format("arg.{}", size)));
    }
  };
  facts.set("model.kv_heads", facts.at("model.heads"));
  if (facts.integer("arg.q_rank", 0) > 0) facts.set("model.q_rank", facts.at("arg.q_rank"));
  take({"kv_rank", "nope_dim", "rope_dim", "value_dim"});
  if (facts.is("arg.scores", "sigmoid")) facts.set("model.scores", "sigmoid");
  facts.set("model.dense_layers", facts.integer("arg.dense_layers", 0));
  if (facts.flag("arg.uses_index")) take({"index_heads", "index_dim", "index_top"});
}

void find_experts(Facts& facts) {
  facts.set("model.experts", facts.integer("arg.experts"));
  facts.set("model.top_k", facts.integer("arg.top_k"));
  // A mixture without latents has base_mlp_dim for its experts; both must be given equal.
  const char* width =
      facts.at("arg.expert_width").get<std::int64_t>() > 0 ? "arg.expert_width" : "arg.width";
  facts.set("model.expert_width", facts.integer(width));
  if (!facts.flag("model.latent")) return;
  facts.set("model.shared_width", facts.integer("arg.shared_experts", 0) * facts.integer(width));
}

Json model_of_sizes(Facts& facts) {
  const std::string name = facts.text("arg.block");
  if (is_maxtext_block(name)) {
    find_sizes(facts);
    return config_of_maxtext_block(facts);
  }
  const auto block = std::find_if(blocks().begin(), blocks().end(),
                                  [&](const Block& one) { return one.name == name; });
  if (block == blocks().end()) {
    std::vector<std::string> known = maxtext_block_names();
    for (const Block& one : blocks()) known.emplace_back(one.name);
    facts.fail("arg.block", fmt::format("decoder block \"{}\" is not made of its sizes here, {} "
                                        "are; name the model's config.json with --model",
                                        name, fmt::join(known, ", ")));
  }
  find_sizes(facts);
  for (const auto& [fact, json] : block->is) facts.set(fact, Json::parse(json));
  refuse_others(*block, facts);
  if (!block->gated) facts.set("model.positions_limit", facts.integer("arg.positions", -1));
  const bool latent = facts.flag("model.latent");
  if (!latent) facts.set("model.head_dim", facts.integer("arg.head_dim"));
  if (facts.is("arg.attention_type", "local_sliding")) {
    facts.set("model.window", facts.integer("arg.window"));
  }
  if (latent) find_latent(facts);
  if (block->routed) find_experts(facts);
  return config_of_facts(facts);
}

using Names = std::pair<std::string_view, std::string_view>;

// Decoder blocks by "model_type".
constexpr Names block_of_type[] = {{"llama", "llama2"},         {"mistral", "mistral"},
                                   {"qwen3", "qwen3"},          {"mixtral", "mixtral"},
                                   {"qwen3_moe", "qwen3_moe"},  {"deepseek_v2", "deepseek"},
                                   {"deepseek_v3", "deepseek"}, {"deepseek_v32", "deepseek"},
                                   {"qwen2", "qwen2"},          {"gpt2", "gpt3"}};

// Of a model and of MaxText's keys.
constexpr Names written_facts[] = {{"model.hidden", "arg.hidden"},
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
                                   {"model.value_dim", "arg.value_dim"},
                                   {"model.index_heads", "arg.index_heads"},
                                   {"model.index_dim", "arg.index_dim"},
                                   {"model.index_top", "arg.index_top"}};

}  // namespace maxtext
}  // namespace

Json maxtext_model(Facts& facts) {
  const std::string name = facts.text("arg.model");
  if (name == "default") return maxtext::model_of_sizes(facts);
  const bool overrides = facts.flag("arg.overrides_model");
  std::vector<std::string> known;
  for (const maxtext::NamedModel& model : maxtext::named_models) {
    if (model.name == name && !overrides) return model.model;
  }
  for (const MaxtextModel& model : maxtext_named_models()) {
    if (model.name == name) {
      for (const std::string_view keys : {model.of_block, model.keys}) {
        set_defaults(keys, maxtext_keys(), /*over_given=*/!overrides, facts);
      }
      return maxtext::model_of_sizes(facts);
    }
    known.emplace_back(model.name);
  }
  facts.fail("arg.model",
             fmt::format("model \"{}\" is not known here; name its config.json with --model", name),
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
  if (has_maxtext_block(config)) {
    add_maxtext_block_facts(config, place, facts);
    return;
  }
  Facts found(facts.whole());
  add_model_facts(config, place, found);
  const std::string type = config.value("model_type", "");
  const auto row =
      std::find_if(std::begin(maxtext::block_of_type), std::end(maxtext::block_of_type),
                   [&](const maxtext::Names& one) { return one.first == type; });
  if (row == std::end(maxtext::block_of_type)) {
    throw InputError(place, fmt::format("MaxText has no decoder block for \"{}\" here", type));
  }
  facts.set("arg.block", row->second);
  if (row->second == "gpt3") {
    facts.set("arg.activations", Json::array({"gelu"}));
    facts.set("arg.positions", found.at("model.positions_limit"));
    if (!found.has("model.width")) found.set("model.width", 4 * found.integer("model.hidden"));
  }
  for (const auto& [ours, theirs] : maxtext::written_facts) {
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
    facts.set("arg.uses_index", found.has("model.index_heads"));
  }
  if (found.has("model.window")) {
    facts.set("arg.attention_type", "local_sliding");
    facts.set("arg.window", found.at("model.window"));
  }
}

}  // namespace shardsim
