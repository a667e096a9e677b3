// Decoders with mixtures of experts.
#include <algorithm>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

ModelSpec mixtral(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8});
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.window = c.count("sliding_window", 0);
  Experts experts =
      read_experts(c, n, "num_local_experts|num_experts", 8, "num_experts_per_tok", 2, n.width);
  experts.router.renormalize = Renormalize::in_place;
  return decoder(n, llama_layer(n, "experts", attention, experts));
}

// Windows of the layers whose entry of `types` slides.
ModelSpec qwen_moe(const Config& c, const Sizes& n, const Attention& base, const Experts& experts,
                   const std::vector<std::string>& types) {
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   Attention attention = base;
                   std::string name = qwen_has_experts(c, i) ? "experts" : "dense";
                   if (!is_full(types, i)) {
                     attention.window = c.count("sliding_window", 4096);
                     name += ", windowed";
                   }
                   if (qwen_has_experts(c, i)) return llama_layer(n, name, attention, experts);
                   return llama_layer(n, name, attention, llama_mlp(n));
                 }));
}

std::vector<std::string> full_layers(const Config& c, std::int64_t layers) {
  return layer_types(c, layers, [](std::int64_t) { return std::string("full_attention"); });
}

ModelSpec qwen2_moe(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 16});
  Attention attention = llama_attention(c, n);
  set_biases(attention, c.flag("qkv_bias", true), false);
  const bool windows = c.flag("use_sliding_window", false);
  const std::int64_t windowed = c.count("max_window_layers", 28);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool slides = windows && i % 2 == 0 && i < windowed;
    return std::string(slides ? "sliding_attention" : "full_attention");
  });
  Experts experts = qwen_experts(c, n, 60, 4, 1408, /*shared=*/1, /*renormalize=*/false);
  experts.shared->width = c.count("shared_expert_intermediate_size", 5632);  // there even without
  return qwen_moe(c, n, attention, experts, types);
}

ModelSpec qwen3_moe(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4});
  Attention attention = llama_attention(c, n);
  attention.q_norm = {NormKind::rms, "q_norm"};
  attention.k_norm = {NormKind::rms, "k_norm"};
  static_cast<void>(c.flag("use_qk_norm", true));  // in files; the class norms in any case
  if (c.flag("use_sliding_window", false)) attention.window = c.count("sliding_window", 4096);
  return qwen_moe(c, n, attention,
                  qwen_experts(c, n, 128, 8, 768, /*shared=*/0, /*renormalize=*/false),
                  full_layers(c, n.layers));
}

}  // namespace

LatentAttention read_latent(const Config& c, const Sizes& n) {
  LatentAttention latent;
  latent.heads = n.heads;
  latent.q_rank = c.optional_size("q_lora_rank", 1536).value_or(0);
  latent.kv_rank = c.size("kv_lora_rank", 512);
  latent.nope_dim = c.size("qk_nope_head_dim", 128);
  latent.rope_dim = c.size("qk_rope_head_dim", 64);
  latent.value_dim = c.size("v_head_dim", 128);
  latent.bias = c.flag("attention_bias", false);
  latent.dropout = c.rate("attention_dropout", 0);
  return latent;
}

void read_groups(const Config& c, Router& router, std::int64_t groups, std::int64_t chosen) {
  router.groups = c.size("n_group|num_expert_group", groups);
  router.chosen_groups = c.size("topk_group", chosen);
}

Experts deepseek_experts(const Config& c, const Sizes& n, std::int64_t number,
                         std::int64_t per_token, std::int64_t width, std::int64_t shared) {
  Experts experts =
      read_experts(c, n, "n_routed_experts|num_experts|num_local_experts", number,
                   "num_experts_per_tok", per_token, c.size("moe_intermediate_size", width));
  experts.router.fp32 = true;
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_experts";
  experts.shared->width = experts.width * c.count("n_shared_experts|num_shared_experts", shared);
  return experts;
}

LayerKind latent_layer(const Sizes& n, const std::string& name, const LatentAttention& attention,
                       const Body& feed_forward) {
  LayerKind layer = llama_layer(n, name, {}, feed_forward);
  layer.branches[0].body = attention;
  return layer;
}

namespace {

ModelSpec deepseek(const Config& c, const Sizes& n, const LatentAttention& attention,
                   const Experts& experts, std::int64_t dense) {
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   if (i < dense) return latent_layer(n, "dense", attention, mlp);
                   return latent_layer(n, "experts", attention, experts);
                 }));
}

ModelSpec deepseek_v2(const Config& c) {
  const Sizes n = read_sizes(c, {});
  LatentAttention attention = read_latent(c, n);
  attention.complex_rotary = true;
  Experts experts = deepseek_experts(c, n, 64, 6, 1407, 2);
  experts.shared->bias = c.flag("mlp_bias", false);
  experts.router.masked = c.text("topk_method", "greedy") == "group_limited_greedy";
  if (experts.router.masked) read_groups(c, experts.router, 1, 1);
  return deepseek(c, n, attention, experts, c.count("first_k_dense_replace", 0));
}

ModelSpec deepseek_v3(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 128});
  Experts experts = deepseek_experts(c, n, 256, 8, 2048, 1);
  experts.router.scores = RouterScores::sigmoid;
  experts.router.correction_bias = "e_score_correction_bias";
  if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::in_place;
  read_groups(c, experts.router, 8, 4);
  return deepseek(c, n, read_latent(c, n), experts, c.count("first_k_dense_replace", 3));
}

// DeepSeek-V3 with other defaults; a file may list which layers are dense.
ModelSpec glm4_moe_lite(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 20, .head_dim = 64});
  LatentAttention attention = read_latent(c, n);
  attention.q_rank = c.optional_size("q_lora_rank", 768).value_or(0);
  attention.nope_dim = c.size("qk_nope_head_dim", 192);
  attention.value_dim = c.size("v_head_dim", 256);
  Experts experts = deepseek_experts(c, n, 64, 4, 1536, 1);
  experts.router.scores = RouterScores::sigmoid;
  experts.router.correction_bias = "e_score_correction_bias";
  if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::in_place;
  read_groups(c, experts.router, 1, 1);
  c.pass_over({"first_k_dense_replace"});
  const auto types = layer_types(
      c, n.layers, [](std::int64_t i) { return std::string(i < 1 ? "dense" : "sparse"); },
      "mlp_layer_types");
  const Mlp mlp = llama_mlp(n);
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   if (types[static_cast<std::size_t>(i)] == "dense") {
                     return latent_layer(n, "dense", attention, mlp);
                   }
                   return latent_layer(n, "experts", attention, experts);
                 }));
}

// Latent attention, dense.
ModelSpec youtu(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 16, .tied = true});
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  return decoder(n, latent_layer(n, "dense", read_latent(c, n), mlp));
}

ModelSpec gpt_oss(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 64});
  n.norm = NormKind::rms_wide;
  Attention attention = llama_attention(c, n);
  const bool bias = c.flag("attention_bias", true);
  set_biases(attention, bias, bias);
  attention.sinks = true;
  attention.rotary.half_table = true;
  attention.rotary.concatenated = true;
  attention.fp32_softmax = false;
  Experts experts = read_experts(c, n, "num_local_experts|num_experts", 128,
                                 "num_experts_per_tok|experts_per_token", 4, n.width);
  experts.router = {.name = "router", .scores = RouterScores::softmax_of_top, .bias = true};
  experts.gate = ExpertsGate::clamped;
  experts.bias = true;
  experts.transposed = true;
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string((i + 1) % 2 != 0 ? "sliding_attention" : "full_attention");
  });
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   attention.window = full ? 0 : c.count("sliding_window", 128);
                   return llama_layer(n, full ? "full" : "windowed", attention, experts);
                 }));
}

// Llama's attention with queries and keys normed over their whole width.
ModelSpec olmoe(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Attention attention = llama_attention(c, n);
  attention.q_norm = {NormKind::rms, "q_norm"};
  attention.k_norm = {NormKind::rms, "k_norm"};
  attention.norm_whole = true;
  attention.clamped = c.cap("clip_qkv", 0) > 0;
  Experts experts =
      read_experts(c, n, "num_experts|num_local_experts", 64, "num_experts_per_tok", 8, n.width);
  experts.router.cast_back = true;
  if (c.flag("norm_topk_prob", false)) experts.router.renormalize = Renormalize::in_place;
  return decoder(n, llama_layer(n, "experts", attention, experts));
}

}  // namespace

Experts granite_experts(const Config& c, const Sizes& n) {
  Experts experts = read_experts(c, n, "num_local_experts", 8, "num_experts_per_tok", 2, n.width);
  experts.name = "block_sparse_moe";
  experts.router = {.name = "router",
                    .scores = RouterScores::softmax_of_top,
                    .fp32_logits = true,
                    .cast_back = true};
  return experts;
}

Experts granite_experts_beside_shared(const Config& c, const Sizes& n) {
  Experts experts = granite_experts(c, n);
  if (const std::int64_t width = c.count("shared_intermediate_size", 0); width > 0) {
    experts.shared = llama_mlp(n);
    experts.shared->name = "shared_mlp";
    experts.shared->form = MlpForm::fused_gate;
    experts.shared->width = width;
    experts.shared->up = "input_linear";
    experts.shared->down = "output_linear";
    experts.shared_outside = true;
  }
  return experts;
}

namespace {

ModelSpec granitemoe(const Config& c) {
  const Sizes n = read_sizes(c, {});
  ModelSpec spec =
      decoder(n, llama_layer(n, "experts", llama_attention(c, n), granite_experts(c, n)));
  set_multipliers(c, spec);
  return spec;
}

// Experts from moe_layer_start_index to moe_layer_end_index, every moe_layer_interval-th layer.
ModelSpec ernie4_5_moe(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4, .tied = true});
  const bool bias = c.flag("use_bias", false);
  Attention attention = llama_attention(c, n);
  set_biases(attention, bias, bias);
  attention.rotary.fp32 = attention.rotary.each_layer = true;
  Mlp mlp = llama_mlp(n);
  mlp.bias = bias;
  Experts experts =
      read_experts(c, n, "moe_num_experts|num_experts", 64, "moe_k|num_experts_per_tok", 6,
                   c.size("moe_intermediate_size", 1536));
  experts.router.fp32_weight = experts.router.cast_back = true;
  experts.router.renormalize = Renormalize::clamped;
  experts.router.correction_bias = "moe_statics.e_score_correction_bias";
  experts.router.correction_is_parameter = true;
  if (const std::int64_t shared = c.count("moe_num_shared_experts", 2); shared > 0) {
    experts.shared = mlp;
    experts.shared->name = "shared_experts";
    experts.shared->width = experts.width * shared;
  }
  const std::int64_t end = c.integer("moe_layer_end_index", -1);
  const std::int64_t last = end < 0 ? n.layers - 1 : end;
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool routed = (i + 1) % c.size("moe_layer_interval", 1) == 0 &&
                                                 i >= c.count("moe_layer_start_index", 1) &&
                                                 i <= last;
                             if (!routed) return llama_layer(n, "dense", attention, mlp);
                             return llama_layer(n, "experts", attention, experts);
                           }));
  spec.head.bias = bias;
  return spec;
}

// Layer norms with biases; the head may have one, too.
ModelSpec phimoe(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 8});
  n.norm = NormKind::layer;
  Attention attention = llama_attention(c, n);
  attention.window = c.count("sliding_window", 0);
  Experts experts = read_experts(c, n, "num_local_experts", 16, "num_experts_per_tok", 2, n.width);
  experts.router = {.name = "router", .scores = RouterScores::sparse_mixer};
  experts.per_token = 2;  // which the mixer is written for
  LayerKind layer = llama_layer(n, "experts", attention, experts);
  for (Branch& branch : layer.branches) branch.before.bias = true;
  ModelSpec spec = decoder(n, layer);
  spec.stacks[0].norm.bias = true;
  spec.head.bias = c.flag("lm_head_bias", false);
  return spec;
}

}  // namespace

// Every fourth layer has no rotary positions and scales its queries instead; the others norm
// queries and keys without parameters. Experts every interleave_moe_layer_step-th layer.
ModelSpec llama4_text(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128});
  Attention base = llama_attention(c, n);
  base.fp32_softmax = false;
  Experts experts = read_experts(c, n, "num_local_experts", 16, "num_experts_per_tok", 1, n.width);
  experts.name = "feed_forward";
  experts.router = {.name = "router", .scores = RouterScores::sigmoid_of_top};
  experts.transposed = experts.weights_on_input = true;
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_expert";
  Mlp mlp = llama_mlp(n);
  mlp.name = "feed_forward";
  mlp.width = c.size("intermediate_size_mlp", 16384);
  const std::int64_t step = c.size("interleave_moe_layer_step", 1);
  const std::int64_t period = c.size("no_rope_layer_interval", 4);
  c.pass_over({"layer_types"});  // made of no_rope_layers
  const std::vector<std::int64_t> with_rotary = c.integers("no_rope_layers");
  const std::vector<std::int64_t> routed = c.integers("moe_layers");
  const auto has_rotary = [&](std::int64_t i) {
    if (with_rotary.empty()) return (i + 1) % period != 0;
    if (with_rotary.size() != static_cast<std::size_t>(n.layers)) {
      c.fail("no_rope_layers", "has not one entry for each layer");
    }
    return with_rotary[static_cast<std::size_t>(i)] != 0;
  };
  const auto has_experts = [&](std::int64_t i) {
    if (!c.given("moe_layers")) return (i + 1) % step == 0;
    return std::find(routed.begin(), routed.end(), i) != routed.end();
  };
  const bool tuned = c.flag("attn_temperature_tuning", true);  // of layers without positions
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   Attention attention = base;
                   std::string name = has_experts(i) ? "experts" : "dense";
                   if (has_rotary(i)) {
                     attention.rotary.complex = true;
                     attention.window = c.count("attention_chunk_size", 8192);
                     if (c.flag("use_qk_norm", true)) {
                       attention.q_norm = attention.k_norm = {NormKind::rms_plain, "qk_norm"};
                       attention.norm_after_rotary = true;
                     }
                   } else {
                     name += ", no positions";
                     attention.rotary.dims = 0;
                     attention.scale_by_position = attention.fp32_position_scale = tuned;
                   }
                   if (has_experts(i)) return llama_layer(n, name, attention, experts);
                   return llama_layer(n, name, attention, mlp);
                 }));
}

ModelSpec qwen3_vl_moe_text(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 16, .tied = true});
  Attention attention = llama_attention(c, n);
  attention.q_norm = {NormKind::rms, "q_norm"};
  attention.k_norm = {NormKind::rms, "k_norm"};
  c.pass_over({"norm_topk_prob"});  // the class divides by the sum in any case
  Experts experts = qwen_experts(c, n, 60, 4, 1408, /*shared=*/0, /*renormalize=*/true);
  experts.router.renormalize = Renormalize::in_place;
  return qwen_moe(c, n, attention, experts, full_layers(c, n.layers));
}

std::vector<Family> expert_families() {
  return {{"MixtralForCausalLM", "mixtral", mixtral},
          {"Qwen2MoeForCausalLM", "qwen2_moe", qwen2_moe},
          {"Qwen3MoeForCausalLM", "qwen3_moe", qwen3_moe},
          {"DeepseekV2ForCausalLM", "deepseek_v2", deepseek_v2},
          {"DeepseekV3ForCausalLM", "deepseek_v3", deepseek_v3},
          {"Glm4MoeLiteForCausalLM", "glm4_moe_lite", glm4_moe_lite},
          {"YoutuForCausalLM", "youtu", youtu},
          {"OlmoeForCausalLM", "olmoe", olmoe},
          {"GraniteMoeForCausalLM", "granitemoe", granitemoe},
          {"Ernie4_5_MoeForCausalLM", "ernie4_5_moe", ernie4_5_moe},
          {"PhimoeForCausalLM", "phimoe", phimoe},
          {"Llama4ForCausalLM", "llama4_text", llama4_text},
          {"GptOssForCausalLM", "gpt_oss", gpt_oss}};
}

}  // namespace shardsim::models
