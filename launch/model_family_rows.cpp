#include "launch/model_family_rows.hpp"

namespace shardsim {
namespace {

using Keys = std::vector<ModelKey>;

Keys joined(Keys first, const Keys& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const Keys sizes = {{"hidden_size", "model.hidden"},
                    {"num_hidden_layers", "model.layers"},
                    {"num_attention_heads", "model.heads"},
                    {"num_key_value_heads", "model.kv_heads"},
                    {"intermediate_size", "model.width"},
                    {"vocab_size", "model.vocab"},
                    {"max_position_embeddings", "model.positions_limit"}};
const ModelKey head_dim = {"head_dim", "model.head_dim"};
const ModelKey untied = {"tie_word_embeddings", "model.tied", "false"};
const ModelKey window = {"sliding_window", "model.window", "null"};
const ModelKey activation = {"hidden_act", "model.activation"};
const ModelKey rotary = {"partial_rotary_factor", "model.rotary_fraction"};
const Keys biases = {{"attention_bias", "model.bias", "false"},
                     {"mlp_bias", "model.bias", "false"}};
const Keys latent = {{"q_lora_rank", "model.q_rank", "null"},
                     {"kv_lora_rank", "model.kv_rank", "512"},
                     {"qk_nope_head_dim", "model.nope_dim", "128"},
                     {"qk_rope_head_dim", "model.rope_dim", "64"},
                     {"v_head_dim", "model.value_dim", "128"}};
const Keys deepseek = joined(joined(sizes, latent),
                             {{"n_routed_experts", "model.experts"},
                              {"num_experts_per_tok", "model.top_k"},
                              {"moe_intermediate_size", "model.expert_width"},
                              {"n_shared_experts", "model.shared_width", "0", "model.expert_width"},
                              {"first_k_dense_replace", "model.dense_layers", "0"},
                              untied});

ModelKey with_default(ModelKey key, std::string_view otherwise) {
  key.otherwise = otherwise;
  return key;
}

// Defaults are those of transformers 5.23.0, configuration_X.py of each.
std::vector<FamilyRow> dense_families() {
  return {
      {"llama",
       "LlamaForCausalLM",
       {},
       joined(joined(sizes, biases), {head_dim, untied}),
       {{"hidden_act", R"("silu")"}}},
      {"mistral",
       "MistralForCausalLM",
       {},
       joined(sizes, {head_dim, window, untied}),
       {{"hidden_act", R"("silu")"}}},
      {"qwen2",
       "Qwen2ForCausalLM",
       {{"model.qkv_bias", "true"}},
       joined(sizes, {untied}),
       {{"hidden_act", R"("silu")"}}},
      {"qwen3",
       "Qwen3ForCausalLM",
       {{"model.qk_norm", "true"}},
       joined(sizes, {with_default(head_dim, "128"), untied}),
       {{"hidden_act", R"("silu")"}}},
      {"gpt2",
       "GPT2LMHeadModel",
       {{"model.norm", R"("layer")"},
        {"model.positions", R"("learned")"},
        {"model.gated", "false"},
        {"model.activation", R"("gelu")"},
        {"model.bias", "true"}},
       {{"n_embd", "model.hidden"},
        {"n_layer", "model.layers"},
        {"n_head", "model.heads"},
        {"n_inner", "model.width", "null"},
        {"vocab_size", "model.vocab"},
        {"n_positions", "model.positions_limit", "1024"},
        {"tie_word_embeddings", "model.tied", "true"}},
       {{"activation_function", R"("gelu_new")"},
        {"resid_pdrop", "0.0"},
        {"embd_pdrop", "0.0"},
        {"attn_pdrop", "0.0"}}},
      {"nemotron",
       "NemotronForCausalLM",
       {{"model.norm", R"("layer")"}, {"model.gated", "false"}},
       joined(joined(sizes, biases), {head_dim, untied, activation, with_default(rotary, "0.5")}),
       {}},
      {"starcoder2",
       "Starcoder2ForCausalLM",
       {{"model.norm", R"("layer")"},
        {"model.gated", "false"},
        {"model.activation", R"("gelu")"},
        {"model.bias", "true"}},
       joined(sizes, {window, with_default(untied, "true")}),
       {{"hidden_act", R"("gelu_pytorch_tanh")"}, {"use_bias", "true"}}},
      {"stablelm",
       "StableLmForCausalLM",
       {{"model.norm", R"("layer")"}},
       joined(sizes,
              {with_default(rotary, "0.25"), untied, {"use_qkv_bias", "model.qkv_bias", "false"}}),
       {{"hidden_act", R"("silu")"}}}};
}

std::vector<FamilyRow> mixtures() {
  return {{"mixtral",
           "MixtralForCausalLM",
           {},
           joined(sizes, {head_dim,
                          window,
                          untied,
                          {"num_local_experts", "model.experts", "8"},
                          {"num_experts_per_tok", "model.top_k", "2"}}),
           {{"hidden_act", R"("silu")"}}},
          {"qwen3_moe",
           "Qwen3MoeForCausalLM",
           {{"model.qk_norm", "true"}},
           joined(sizes, {head_dim,
                          untied,
                          {"num_experts", "model.experts"},
                          {"num_experts_per_tok", "model.top_k"},
                          {"moe_intermediate_size", "model.expert_width"}}),
           {{"hidden_act", R"("silu")"}, {"norm_topk_prob", "true"}}},
          {"qwen2_moe",
           "Qwen2MoeForCausalLM",
           {{"model.shared_gate", "true"}},
           joined(sizes, {untied,
                          {"num_experts", "model.experts"},
                          {"num_experts_per_tok", "model.top_k"},
                          {"moe_intermediate_size", "model.expert_width"},
                          {"shared_expert_intermediate_size", "model.shared_width"},
                          {"qkv_bias", "model.qkv_bias", "true"}}),
           {{"hidden_act", R"("silu")"}}},
          {"deepseek_v2",
           "DeepseekV2ForCausalLM",
           {{"model.latent", "true"}},
           deepseek,
           {{"hidden_act", R"("silu")"}}},
          {"deepseek_v3",
           "DeepseekV3ForCausalLM",
           {{"model.latent", "true"}, {"model.scores", R"("sigmoid")"}},
           deepseek,
           {{"hidden_act", R"("silu")"}}},
          {"deepseek_v32",
           "DeepseekV32ForCausalLM",
           {{"model.latent", "true"}, {"model.scores", R"("sigmoid")"}},
           joined(deepseek, {{"index_n_heads", "model.index_heads"},
                             {"index_head_dim", "model.index_dim"},
                             {"index_topk", "model.index_top"}}),
           {{"hidden_act", R"("silu")"}}}};
}

// Of several kinds of attention by turns.
std::vector<FamilyRow> alternating_families() {
  return {{"gpt_oss",
           "GptOssForCausalLM",
           {{"model.sinks", "true"},
            {"model.clamped", "true"},
            {"model.bias", "true"},
            {"model.window_skip", "2"}},
           joined(sizes, {with_default(head_dim, "64"),
                          window,
                          untied,
                          {"num_local_experts", "model.experts"},
                          {"num_experts_per_tok", "model.top_k", "4"}}),
           {}},
          {"llama4_text",
           "Llama4ForCausalLM",
           {{"model.weighs_input", "true"}, {"model.scores", R"("sigmoid")"}},
           {{"hidden_size", "model.hidden"},
            {"num_hidden_layers", "model.layers"},
            {"num_attention_heads", "model.heads"},
            {"num_key_value_heads", "model.kv_heads"},
            {"vocab_size", "model.vocab"},
            head_dim,
            untied,
            {"intermediate_size_mlp", "model.width"},
            {"intermediate_size", "model.expert_width"},
            {"intermediate_size", "model.shared_width"},
            {"num_local_experts", "model.experts"},
            {"num_experts_per_tok", "model.top_k", "1"},
            {"max_position_embeddings", "model.positions_limit"},
            {"interleave_moe_layer_step", "model.routed_step", "1"},
            {"attention_chunk_size", "model.chunk", "8192"},
            {"no_rope_layer_interval", "model.nope_interval", "4"},
            {"use_qk_norm", "model.l2_norm", "true"}},
           {{"hidden_act", R"("silu")"}}}};
}

// Patterns of layers, and whatever Megatron's arguments make that no class is; last, as those with
// a class of their own are these.
std::vector<FamilyRow> patterned_families() {
  return {{"nemotron_h",
           "NemotronHForCausalLM",
           {{"model.positions", R"("none")"}, {"model.gated", "false"}},
           joined(joined(sizes, biases),
                  {head_dim,
                   untied,
                   {"mlp_hidden_act", "model.activation"},
                   {"hybrid_override_pattern", "model.pattern"},
                   {"mamba_num_heads", "model.mamba_heads"},
                   {"mamba_head_dim", "model.mamba_dim"},
                   {"ssm_state_size", "model.mamba_state"},
                   {"n_groups", "model.mamba_groups"},
                   {"n_routed_experts", "model.experts"},
                   {"num_experts_per_tok", "model.top_k"},
                   {"moe_intermediate_size", "model.expert_width"},
                   {"moe_shared_expert_intermediate_size", "model.shared_width"}}),
           {},
           /*may_lack_experts=*/true},
          {"megatron_gpt",
           "GPTModel",
           {},
           joined(sizes, {head_dim,
                          {"tie_word_embeddings", "model.tied", "true"},
                          {"hidden_act", "model.activation"},
                          {"gated", "model.gated", "false"},
                          {"normalization", "model.norm", R"("layer")"},
                          {"position_embedding", "model.positions", R"("learned")"},
                          {"use_bias", "model.bias", "true"},
                          {"qkv_bias", "model.qkv_bias", "false"},
                          {"qk_norm", "model.qk_norm", "false"},
                          rotary,
                          window,
                          {"num_experts", "model.experts"},
                          {"num_experts_per_tok", "model.top_k"},
                          {"moe_intermediate_size", "model.expert_width"},
                          {"shared_expert_intermediate_size", "model.shared_width"},
                          {"shared_expert_gate", "model.shared_gate"},
                          {"router_scores", "model.scores"},
                          {"first_k_dense_replace", "model.dense_layers"}}),
           {},
           /*may_lack_experts=*/true}};
}

}  // namespace

const std::vector<std::pair<std::string_view, std::string_view>>& neutral_facts() {
  static const std::vector<std::pair<std::string_view, std::string_view>> facts = {
      {"model.norm", R"("rms")"},  {"model.positions", R"("rope")"},
      {"model.gated", "true"},     {"model.activation", R"("silu")"},
      {"model.bias", "false"},     {"model.qkv_bias", "false"},
      {"model.qk_norm", "false"},  {"model.rotary_fraction", "1.0"},
      {"model.window", "null"},    {"model.experts", "null"},
      {"model.shared_width", "0"}, {"model.shared_gate", "false"},
      {"model.dense_layers", "0"}, {"model.scores", R"("softmax")"},
      {"model.latent", "false"},   {"model.positions_limit", "null"},
      {"model.pattern", "null"},   {"model.sinks", "false"},
      {"model.clamped", "false"},  {"model.window_skip", "null"},
      {"model.l2_norm", "false"},  {"model.weighs_input", "false"}};
  return facts;
}

const std::vector<FamilyRow>& family_rows() {
  static const std::vector<FamilyRow> rows = [] {
    std::vector<FamilyRow> all = dense_families();
    for (FamilyRow& row : mixtures()) all.push_back(std::move(row));
    for (FamilyRow& row : alternating_families()) all.push_back(std::move(row));
    for (FamilyRow& row : patterned_families()) all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

}  // namespace shardsim
