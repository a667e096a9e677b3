// Decoders with mixtures of experts of 2025 and 2026 that people train: Trinity, EXAONE, Command A,
// Hunyuan 3, Laguna, Mellum, MiMo, Granite with windows.
#include <algorithm>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

void norm_heads_by_rms(Attention& attention, NormKind kind = NormKind::rms) {
  attention.q_norm = {kind, "q_norm"};
  attention.k_norm = {kind, "k_norm"};
}

// "dense" or "sparse" of each layer; a file may say how many come first.
std::vector<std::string> mlp_types(const Config& c, std::int64_t layers, std::int64_t dense) {
  const std::int64_t first = c.count("first_k_dense_replace", dense);
  return layer_types(
      c, layers, [&](std::int64_t i) { return std::string(i < first ? "dense" : "sparse"); },
      "mlp_layer_types");
}

bool is_dense(const std::vector<std::string>& types, std::int64_t layer) {
  return types[static_cast<std::size_t>(layer)] == "dense";
}

std::string kind_name(bool full, bool dense) {
  return std::string(full ? "full" : "windowed") + (dense ? ", dense" : ", experts");
}

// A gate of attention's result from a projection of its own, four norms, positions on windowed
// layers alone.
ModelSpec afmoe(const Config& c) {
  Sizes n = read_sizes(c, {.head_dim = 128});
  n.norm = NormKind::rms_wide;
  const std::int64_t period = c.size("global_attn_every_n_layers", 4);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    return std::string((i + 1) % period != 0 ? "sliding_attention" : "full_attention");
  });
  Attention base = llama_attention(c, n);
  norm_heads_by_rms(base, n.norm);
  base.gate_name = "gate_proj";
  Experts experts = read_experts(c, n, "num_experts", 64, "num_experts_per_tok", 6,
                                 c.size("moe_intermediate_size", 1408));
  experts.router.name = "router.gate";
  experts.router.scores = RouterScores::sigmoid;
  experts.router.fp32_logits = true;
  experts.router.renormalize = Renormalize::offset;
  experts.router.correction_is_parameter = experts.router.correction_flat = true;
  experts.correction_bias = "expert_bias";
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_experts";
  experts.shared->width = experts.width * c.size("num_shared_experts", 2);
  const std::int64_t dense = c.count("num_dense_layers", 1);
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool full = is_full(types, i);
                             Attention attention = base;
                             attention.window = full ? 0 : c.count("sliding_window", 1024);
                             if (full) attention.rotary.dims = 0;
                             LayerKind layer =
                                 llama_layer(n, kind_name(full, i < dense), attention, experts);
                             if (i < dense) layer.branches[1].body = llama_mlp(n);
                             layer.branches[0].after = {n.norm, "post_attention_layernorm"};
                             layer.branches[1].before.name = "pre_mlp_layernorm";
                             layer.branches[1].after = {n.norm, "post_mlp_layernorm"};
                             return layer;
                           }));
  std::get<TokenEmbedding>(spec.stacks[0].input).scaled = c.flag("mup_enabled", false);
  return spec;
}

// EXAONE 4's attention, norms before, DeepSeek's routing.
ModelSpec exaone_moe(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32});
  Attention base = llama_attention(c, n);
  set_biases(base, false, false);
  norm_heads_by_rms(base);
  const auto window = c.optional_size("sliding_window", 4096);
  const std::int64_t period = window ? c.size("sliding_window_pattern", 4) : 1;
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool slides = window && (i + 1) % period != 0;
    return std::string(slides ? "sliding_attention" : "full_attention");
  });
  const Experts experts = sigmoid_experts(c, n, 64, 8, 1024, 1, true);
  const auto mlps = mlp_types(c, n.layers, 1);
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   Attention attention = base;
                   attention.window = full ? 0 : window.value_or(0);
                   if (full && window) attention.rotary.dims = 0;
                   const std::string name = kind_name(full, is_dense(mlps, i));
                   if (is_dense(mlps, i)) return llama_layer(n, name, attention, llama_mlp(n));
                   return llama_layer(n, name, attention, experts);
                 }));
}

// Cohere 2 with experts: attention and experts of one norm.
ModelSpec cohere2_moe(const Config& c) {
  Sizes n = read_sizes(c, {.head_dim = 128, .tied = true});
  n.norm = c.given("rms_norm_eps") ? NormKind::rms : NormKind::layer_wide;
  const std::int64_t first = c.count("first_k_dense_replace", 0);
  const std::int64_t first_period = c.size("prefix_dense_sliding_window_pattern", 1);
  const std::int64_t period = c.size("sliding_window_pattern", 4);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool slides = i < first ? (i + 1) % first_period != 0 : (i - first + 1) % period != 0;
    return std::string(slides ? "sliding_attention" : "full_attention");
  });
  const auto mlps = mlp_types(c, n.layers, 0);
  Experts experts = read_experts(c, n, "num_experts", 8, "num_experts_per_tok", 2, n.width);
  experts.router.cast_back = true;
  experts.router.scores = RouterScores::softmax_of_top;
  experts.router.fp32_softmax = true;
  if (c.choice("expert_selection_fn", "softmax", {"softmax", "sigmoid"}) == "sigmoid") {
    experts.router.scores = RouterScores::sigmoid_of_top;
    if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::in_place;
  }
  c.pass_over({"norm_topk_prob"});
  if (const std::int64_t shared = c.count("num_shared_experts", 0); shared > 0) {
    experts.shared = llama_mlp(n);
    experts.shared->name = "shared_experts";
    experts.shared->width = n.width * shared;
    experts.shared_averaged = c.text("shared_expert_combination_strategy", "average") == "average";
  }
  c.pass_over({"shared_expert_combination_strategy"});
  Mlp mlp = llama_mlp(n);
  mlp.width = c.size("prefix_dense_intermediate_size", n.width);
  ModelSpec spec = decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        const bool full = is_full(types, i);
        Attention attention = llama_attention(c, n);
        attention.window = full ? 0 : c.count("sliding_window", 4096);
        if (full) attention.rotary.dims = 0;
        LayerKind layer{.name = kind_name(full, is_dense(mlps, i)),
                        .branches = {{.before = {n.norm, "input_layernorm"}, .body = attention},
                                     {.body = experts}},
                        .parallel = true};
        if (is_dense(mlps, i)) layer.branches[1].body = mlp;
        return layer;
      }));
  static_cast<void>(c.number("logit_scale", 1));  // multiplied by in any case
  spec.head.scaled = true;
  return spec;
}

ModelSpec granitemoe_swa(const Config& c) {
  const Sizes n = read_sizes(c, {});
  const Experts experts = granite_experts_beside_shared(c, n);
  ModelSpec spec = decoder(n, sink_layers(c, n, experts));
  set_multipliers(c, spec);
  return spec;
}

ModelSpec hy_v3(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128});
  Attention attention = llama_attention(c, n);
  norm_heads_by_rms(attention);
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  Experts experts = sigmoid_experts(c, n, 192, 8, 1536, 1, true);
  experts.router.correction_bias.clear();
  experts.router.groups = 0;  // it has none
  experts.correction_bias = "e_score_correction_bias";
  experts.shared->bias = mlp.bias;
  const auto mlps = mlp_types(c, n.layers, 1);
  c.pass_over({"enable_moe_fp32_combine"});
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   if (is_dense(mlps, i)) return llama_layer(n, "dense", attention, mlp);
                   return llama_layer(n, "experts", attention, experts);
                 }));
}

// As many heads as each layer's entry says; a gate of each head or of each number.
ModelSpec laguna(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128});
  Attention base = llama_attention(c, n);
  base.o_bias = base.q_bias;
  norm_heads_by_rms(base);
  base.gate_name = "g_proj";
  const auto gating = c.json().find("gating");
  const bool per_head =
      !gating || (gating->is_string() ? gating->string() == "per-head" : gating->boolean());
  base.gate_per_head = per_head;
  base.gate_softplus = true;
  c.pass_over({"gating"});
  const auto types =
      layer_types(c, n.layers, [](std::int64_t) { return std::string("full_attention"); });
  const std::vector<std::int64_t> heads = c.integers("num_attention_heads_per_layer");
  const auto mlps = mlp_types(c, n.layers, 1);
  Experts experts = read_experts(c, n, "num_experts", 256, "num_experts_per_tok", 8,
                                 c.size("moe_intermediate_size", 512));
  experts.router.scores = RouterScores::sigmoid;
  experts.router.fp32_logits = experts.router.cast_back = true;
  experts.router.renormalize = Renormalize::offset;
  experts.router.correction_bias = "e_score_correction_bias";
  experts.router.correction_is_parameter = experts.router.correction_flat = true;
  experts.weights_on_input = c.flag("moe_apply_router_weight_on_input", false);
  static_cast<void>(c.number("moe_router_logit_softcapping", 0));
  c.pass_over({"sliding_window"});
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_experts";
  experts.shared->width = c.size("shared_expert_intermediate_size", 512);
  return decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        const bool full = is_full(types, i);
        Attention attention = base;
        const auto at = static_cast<std::size_t>(i);
        if (at < heads.size()) attention.heads = heads[at];
        static_cast<void>(c.divided("num_attention_heads_per_layer", attention.heads,
                                    "num_key_value_heads", n.kv_heads));
        attention.window = full ? 0 : c.count("sliding_window", 512);
        attention.rotary.table = full ? "rotary" : "rotary of windows";
        attention.rotary.dims = static_cast<std::int64_t>(
            static_cast<double>(n.head_dim) *
            c.rotary_number(full ? "full_attention" : "sliding_attention", "partial_rotary_factor",
                            full && !c.given("rope_parameters") ? 0.5 : 1));
        attention.rotary.concatenated = true;
        const std::string name = kind_name(full, is_dense(mlps, i));
        if (is_dense(mlps, i)) return llama_layer(n, name, attention, llama_mlp(n));
        return llama_layer(n, name, attention, experts);
      }));
}

ModelSpec mellum(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4, .head_dim = 128});
  Attention base = llama_attention(c, n);
  norm_heads_by_rms(base);
  const auto types =
      layer_types(c, n.layers, [](std::int64_t) { return std::string("full_attention"); });
  const auto mlps = mlp_types(c, n.layers, 0);
  // Layers of multi-token prediction are left out.
  c.pass_over({"sliding_window", "num_mtp_layers", "mtp_layer_types", "mtp_mlp_layer_types"});
  const Experts experts = qwen_experts(c, n, 64, 8, 896, /*shared=*/0, /*renormalize=*/true);
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   Attention attention = base;
                   attention.window = full ? 0 : c.count("sliding_window", 1024);
                   attention.rotary.table = full ? "rotary" : "rotary of windows";
                   const std::string name = kind_name(full, is_dense(mlps, i));
                   if (is_dense(mlps, i)) return llama_layer(n, name, attention, llama_mlp(n));
                   return llama_layer(n, name, attention, experts);
                 }));
}

// Windowed layers have twice as many heads of keys, and sinks; values are narrower than keys.
ModelSpec mimo_v2_flash(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4, .head_dim = 192});
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string(i == 0 || (i + 1) % 6 == 0 ? "full_attention" : "sliding_attention");
  });
  const auto mlps = mlp_types(c, n.layers, 1);
  Attention base = llama_attention(c, n);
  base.o_bias = false;
  base.value_dim = c.size("v_head_dim", 128);
  static_cast<void>(c.number("attention_value_scale", 1));
  base.scaled_values = true;
  base.rotary.concatenated = true;
  Experts experts = sigmoid_experts(c, n, 256, 8, 2048, 1, true);
  experts.shared.reset();
  const std::int64_t window = c.given("sliding_window_size") ? c.size("sliding_window_size") + 1
                                                             : c.count("sliding_window", 129);
  c.pass_over({"sliding_window_size", "sliding_window", "n_shared_experts", "num_shared_experts"});
  return decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        const bool full = is_full(types, i);
        Attention attention = base;
        attention.window = full ? 0 : window;
        attention.rotary.table = full ? "rotary" : "rotary of windows";
        attention.rotary.dims = static_cast<std::int64_t>(
            static_cast<double>(n.head_dim) *
            c.rotary_number(full ? "full_attention" : "sliding_attention", "partial_rotary_factor",
                            c.given("rope_parameters") ? 1 : 0.334));
        attention.sinks = !full;
        if (!full) attention.kv_heads = 2 * n.kv_heads;
        const std::string name = kind_name(full, is_dense(mlps, i));
        if (is_dense(mlps, i)) return llama_layer(n, name, attention, llama_mlp(n));
        return llama_layer(n, name, attention, experts);
      }));
}

ModelSpec aria_text(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Experts experts = read_experts(c, n, "moe_num_experts", 8, "moe_topk", 2, n.width);
  experts.activation = "silu";
  experts.router = {.name = "router", .scores = RouterScores::softmax_of_top, .cast_back = true};
  experts.transposed = true;
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_experts";
  experts.shared->width = n.width * c.size("moe_num_shared_experts", 2);
  experts.shared->bias = c.flag("mlp_bias", false);
  return decoder(n, llama_layer(n, "experts", llama_attention(c, n), experts));
}

}  // namespace

std::vector<Family> recent_expert_families() {
  return {{"AfmoeForCausalLM", "afmoe", afmoe},
          {"ExaoneMoeForCausalLM", "exaone_moe", exaone_moe},
          {"Cohere2MoeForCausalLM", "cohere2_moe", cohere2_moe},
          {"GraniteMoeSWAForCausalLM", "granitemoe_swa", granitemoe_swa},
          {"HYV3ForCausalLM", "hy_v3", hy_v3},
          {"LagunaForCausalLM", "laguna", laguna},
          {"MellumForCausalLM", "mellum", mellum},
          {"MiMoV2FlashForCausalLM", "mimo_v2_flash", mimo_v2_flash},
          {"AriaTextForCausalLM", "aria_text", aria_text}};
}

}  // namespace shardsim::models
