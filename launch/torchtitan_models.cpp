#include "launch/torchtitan_models.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/json.hpp"
#include "launch/model_families.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {

struct Flavor {
  std::string_view name, flavor;
  std::string_view model;  // JSON, as an experiment has it
};

// torchtitan 0.2.0 to 0.3.0, models/{llama3,llama4,deepseek_v3,qwen3,gpt_oss}/__init__.py: numbers
// of parameters are those of its own classes (0.3.0) but for routing biases, buffers there. Llama 2
// of 0.1.
const std::vector<Flavor> flavors = {
    {"llama2", "7B", R"("llama-2-7b")"},
    {"llama3", "debugmodel",
     R"({"base": "llama-3.1-8b", "hidden_size": 256, "num_hidden_layers": 6,
         "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 768,
         "vocab_size": 2048})"},
    {"llama3", "1B", R"("llama-3.2-1b")"},
    {"llama3", "3B",
     R"({"base": "llama-3.1-8b", "hidden_size": 3072, "num_hidden_layers": 28,
         "num_attention_heads": 24, "intermediate_size": 8192, "tie_word_embeddings": true})"},
    {"llama3", "8B", R"("llama-3.1-8b")"},
    {"llama3", "70B", R"("llama-3.1-70b")"},
    {"llama3", "405B", R"("llama-3.1-405b")"},
    {"llama4", "17bx16e",
     R"({"base": "llama-4-maverick", "num_local_experts": 16, "interleave_moe_layer_step": 1,
         "no_rope_layer_interval": 1000, "attention_chunk_size": 0})"},
    {"llama4", "17bx128e",
     R"({"base": "llama-4-maverick", "no_rope_layer_interval": 1000, "attention_chunk_size": 0})"},
    {"llama4", "17bx16e_irope",
     R"({"base": "llama-4-maverick", "num_local_experts": 16, "interleave_moe_layer_step": 1})"},
    {"llama4", "17bx128e_irope", R"("llama-4-maverick")"},
    {"deepseek_v3", "debugmodel",
     R"({"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
         "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 16,
         "num_key_value_heads": 16, "intermediate_size": 1024, "moe_intermediate_size": 256,
         "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 3,
         "first_k_dense_replace": 1, "q_lora_rank": null, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "vocab_size": 2048, "max_position_embeddings": 16384, "hidden_act": "silu",
         "tie_word_embeddings": false})"},
    {"deepseek_v3", "16B",
     R"({"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
         "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16,
         "num_key_value_heads": 16, "intermediate_size": 10944, "moe_intermediate_size": 1408,
         "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
         "first_k_dense_replace": 1, "q_lora_rank": null, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "vocab_size": 102400, "max_position_embeddings": 16384, "hidden_act": "silu",
         "tie_word_embeddings": false})"},
    {"deepseek_v3", "236B",
     R"({"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
         "hidden_size": 5120, "num_hidden_layers": 60, "num_attention_heads": 128,
         "num_key_value_heads": 128, "intermediate_size": 12288, "moe_intermediate_size": 1536,
         "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6,
         "first_k_dense_replace": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "vocab_size": 102400, "max_position_embeddings": 16384, "hidden_act": "silu",
         "topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3,
         "tie_word_embeddings": false})"},
    {"deepseek_v3", "671B", R"("deepseek-v3")"},
    {"qwen3", "debugmodel",
     R"({"base": "qwen3-1.7b", "hidden_size": 256, "num_hidden_layers": 8,
         "intermediate_size": 3072, "vocab_size": 2048})"},
    {"qwen3", "debugmodel_moe",
     R"({"base": "qwen3-30b-a3b", "hidden_size": 256, "num_hidden_layers": 8,
         "num_attention_heads": 16, "num_key_value_heads": 8, "num_experts": 64,
         "vocab_size": 2048})"},
    {"qwen3", "0.6B", R"({"base": "qwen3-1.7b", "hidden_size": 1024, "intermediate_size": 3072})"},
    {"qwen3", "1.7B", R"("qwen3-1.7b")"},
    {"qwen3", "4B",
     R"({"base": "qwen3-1.7b", "hidden_size": 2560, "num_hidden_layers": 36,
         "num_attention_heads": 32, "intermediate_size": 9728})"},
    {"qwen3", "8B",
     R"({"base": "qwen3-1.7b", "hidden_size": 4096, "num_hidden_layers": 36,
         "num_attention_heads": 32, "intermediate_size": 12288, "tie_word_embeddings": false})"},
    {"qwen3", "14B",
     R"({"base": "qwen3-1.7b", "hidden_size": 5120, "num_hidden_layers": 40,
         "num_attention_heads": 40, "intermediate_size": 17408, "tie_word_embeddings": false})"},
    {"qwen3", "32B",
     R"({"base": "qwen3-1.7b", "hidden_size": 5120, "num_hidden_layers": 64,
         "num_attention_heads": 64, "intermediate_size": 25600, "tie_word_embeddings": false})"},
    {"qwen3", "30B-A3B", R"("qwen3-30b-a3b")"},
    {"qwen3", "235B-A22B", R"("qwen3-235b-a22b")"},
    {"gpt_oss", "debugmodel",
     R"({"base": "gpt-oss-120b", "hidden_size": 256, "num_hidden_layers": 4,
         "num_local_experts": 8, "vocab_size": 2048})"},
    {"gpt_oss", "20b",
     R"({"base": "gpt-oss-120b", "num_hidden_layers": 24, "num_local_experts": 32})"},
    {"gpt_oss", "120b", R"("gpt-oss-120b")"}};

// Flavors that differ in how attention is computed, "8B_flex": of documents in a sequence, which
// are taken as one.
constexpr std::string_view attention_suffixes[] = {"_flex_attn", "_varlen_attn", "_flex",
                                                   "_varlen"};

bool same_flavor(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

Json config_of(const Flavor& flavor) {
  const Json model = Json::parse(flavor.model);
  return *load_model_config(JsonReader(model, {"torchtitan", ""}), "").json;
}

// By what makes a difference, where the family's keys are known, else by all.
bool same_model(const Json& a, const Json& b) {
  if (a.value("model_type", "") != b.value("model_type", "")) return false;
  Facts left, right;
  try {
    add_model_facts(a, {}, left);
    add_model_facts(b, {}, right);
  } catch (const InputError&) {
    return nlohmann::json(a) == nlohmann::json(b);
  }
  for (Facts* facts : {&left, &right}) facts->erase("model.positions_limit");
  if (left.all().size() != right.all().size()) return false;
  for (const auto& [name, fact] : left.all()) {
    if (!right.has(name) || right.at(name) != *fact.value) return false;
  }
  return true;
}

}  // namespace

Json torchtitan_model(const Facts& facts, std::vector<std::string>& notes) {
  const std::string name = facts.text("arg.name");
  std::string wanted = facts.text("arg.flavor");
  for (const std::string_view suffix : attention_suffixes) {
    if (!wanted.ends_with(suffix)) continue;
    wanted.erase(wanted.size() - suffix.size());
    notes.push_back(fmt::format(
        "\"{}\" attends within documents: attention is planned as if each sequence were one, "
        "unless --set workload.documents=TOKENS says how long they are",
        suffix));
    break;
  }
  std::vector<std::string> names, of_name;
  for (const Flavor& flavor : flavors) {
    if (names.empty() || names.back() != flavor.name) names.emplace_back(flavor.name);
    if (flavor.name != name) continue;
    if (same_flavor(flavor.flavor, wanted)) return Json::parse(flavor.model);
    of_name.emplace_back(flavor.flavor);
  }
  if (of_name.empty()) {
    facts.fail("arg.name", fmt::format("torchtitan's model \"{}\" is not known here, {} are; name "
                                       "its config.json with --model",
                                       name, fmt::join(names, ", ")));
  }
  facts.fail("arg.flavor",
             fmt::format("flavor \"{}\" of {} is not known here, {} are; name its config.json with "
                         "--model",
                         wanted, name, fmt::join(of_name, ", ")));
}

void add_torchtitan_flavor(const Json& config, const Place& place, Facts& facts) {
  std::vector<std::string> known;
  for (const Flavor& flavor : flavors) {
    known.push_back(fmt::format("{} {}", flavor.name, flavor.flavor));
    if (!same_model(config_of(flavor), config)) continue;
    facts.set("arg.name", flavor.name);
    facts.set("arg.flavor", flavor.flavor);
    return;
  }
  throw InputError(place, fmt::format("torchtitan has no flavor that is this model; known are {}",
                                      fmt::join(known, ", ")));
}

}  // namespace shardsim
