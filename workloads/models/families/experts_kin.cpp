// More decoders with mixtures of experts: DeepSeek's routing under grouped attention, and others.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
// Sigmoid scores in fp32, a bias that moves the choice, shared experts.
Experts sigmoid_experts(const Config& c, const Sizes& n, std::int64_t number,
                        std::int64_t per_token, std::int64_t width, std::int64_t shared,
                        bool renormalize) {
  Experts experts = deepseek_experts(c, n, number, per_token, width, shared);
  experts.router.scores = RouterScores::sigmoid;
  experts.router.correction_bias = "e_score_correction_bias";
  if (c.flag("norm_topk_prob", renormalize)) {
    experts.router.renormalize = Renormalize::in_place;
  }
  read_groups(c, experts.router, 1, 1);
  return experts;
}

namespace {

void norm_heads(Attention& attention, NormKind kind) {
  attention.q_norm = {kind, "q_norm"};
  attention.k_norm = {kind, "k_norm"};
}

ModelSpec after_dense(const Config& c, const Sizes& n, const Attention& attention,
                      const Experts& experts, std::int64_t dense) {
  const std::int64_t first = c.count("first_k_dense_replace", dense);
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   if (i < first) return llama_layer(n, "dense", attention, llama_mlp(n));
                   return llama_layer(n, "experts", attention, experts);
                 }));
}

ModelSpec glm4_moe(const Config& c) {
  // Rounded down, as the class's own 4096 / 96; its tables have a pair for what is left of one.
  const std::int64_t head_dim = c.needed("hidden_size", 4096) / c.needed("num_attention_heads", 96);
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = head_dim});
  Attention attention = llama_attention(c, n);
  attention.o_bias = false;
  attention.rotary.dims = (rotary_dims(c, n.head_dim, 0.5) + 1) / 2 * 2;
  attention.rotary.concatenated = true;
  if (c.flag("use_qk_norm", false)) norm_heads(attention, NormKind::rms);
  return after_dense(c, n, attention, sigmoid_experts(c, n, 128, 8, 1408, 1, true), 1);
}

ModelSpec dots1(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32});
  Attention attention = llama_attention(c, n);
  norm_heads(attention, NormKind::rms);
  c.pass_over({"sliding_window", "max_window_layers"});  // unless layer_types has windows, which
                                                         // is another key's error
  return after_dense(c, n, attention, sigmoid_experts(c, n, 128, 6, 1408, 2, false), 0);
}

// Every layer has experts.
ModelSpec solar_open(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128, .has_width = false});
  Attention attention = llama_attention(c, n);
  attention.o_bias = false;
  return decoder(
      n, llama_layer(n, "experts", attention, sigmoid_experts(c, n, 128, 8, 1280, 1, true)));
}

// Queries and keys normed over their whole width; half of each head turned.
ModelSpec minimax_m2(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128});
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  norm_heads(attention, NormKind::rms);
  attention.norm_whole = true;
  attention.rotary.dims = c.size("rotary_dim", n.head_dim);
  if (c.given("rope_parameters") || c.given("partial_rotary_factor")) {
    attention.rotary.dims = static_cast<std::int64_t>(static_cast<double>(n.head_dim) *
                                                      c.rotary_number("partial_rotary_factor", 1));
  }
  attention.rotary.concatenated = true;
  Experts experts =
      read_experts(c, n, "num_local_experts|num_experts", 256, "num_experts_per_tok", 8, n.width);
  experts.router.scores = RouterScores::sigmoid;
  experts.router.fp32_logits = true;
  experts.router.renormalize = Renormalize::in_place;
  experts.correction_bias = "e_score_correction_bias";
  return decoder(n, llama_layer(n, "experts", attention, experts));
}

ModelSpec hunyuan_v1_moe(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Attention attention = llama_attention(c, n);
  attention.q_norm = {NormKind::rms, "query_layernorm"};
  attention.k_norm = {NormKind::rms, "key_layernorm"};
  attention.norm_after_rotary = true;
  Experts experts = read_experts(c, n, "num_experts", 1, "moe_topk", 1, n.width);
  experts.router.name = "gate.wg";
  experts.router.renormalize = Renormalize::in_place;
  experts.router.fp32_weight = true;
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_mlp";
  return decoder(n, llama_layer(n, "experts", attention, experts));
}

// OLMo 2's attention and norms with experts.
ModelSpec flex_olmo(const Config& c) {
  Sizes n = read_sizes(c, {});
  n.norm = NormKind::rms_wide;
  Attention attention = llama_attention(c, n);
  norm_heads(attention, n.norm);
  attention.norm_whole = true;
  attention.rotary.fp32 = true;
  Experts experts =
      read_experts(c, n, "num_experts|num_local_experts", 7, "num_experts_per_tok", 5, n.width);
  experts.router.cast_back = true;
  if (c.flag("norm_topk_prob", false)) experts.router.renormalize = Renormalize::in_place;
  return decoder(
      n, {.name = "experts",
          .branches = {{.body = attention, .after = {n.norm, "post_attention_layernorm"}},
                       {.body = experts, .after = {n.norm, "post_feedforward_layernorm"}}}});
}

// A shared MLP beside the experts, outside their module.
ModelSpec granitemoeshared(const Config& c) {
  const Sizes n = read_sizes(c, {});
  const Experts experts = granite_experts_beside_shared(c, n);
  ModelSpec spec = decoder(n, llama_layer(n, "experts", llama_attention(c, n), experts));
  set_multipliers(c, spec);
  return spec;
}

}  // namespace

std::vector<Family> experts_kin_families() {
  return {{"Glm4MoeForCausalLM", "glm4_moe", glm4_moe},
          {"Dots1ForCausalLM", "dots1", dots1},
          {"SolarOpenForCausalLM", "solar_open", solar_open},
          {"MiniMaxM2ForCausalLM", "minimax_m2", minimax_m2},
          {"HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", hunyuan_v1_moe},
          {"FlexOlmoForCausalLM", "flex_olmo", flex_olmo},
          {"GraniteMoeSharedForCausalLM", "granitemoeshared", granitemoeshared}};
}

}  // namespace shardsim::models
