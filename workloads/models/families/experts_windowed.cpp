// Decoders of small experts and sigmoid routers of 2026, windowed layers with positions and full
// ones without: Flint, Kolibri, Beam.
#include "base/json.hpp"
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

Attention normed_attention(const Config& c, const Sizes& n) {
  Attention attention = llama_attention(c, n);
  attention.q_norm = {n.norm, "q_norm"};
  attention.k_norm = {n.norm, "k_norm"};
  return attention;
}

// Of the largest logits, without groups; beside one MLP that every token visits.
Experts plainly_chosen_experts(const Config& c, const Sizes& n, std::int64_t number,
                               std::int64_t shared, std::string shared_name, bool renormalize) {
  Experts experts = read_experts(c, n, "num_experts|num_local_experts", number,
                                 "num_experts_per_tok", 6, c.size("moe_intermediate_size", 512));
  experts.router.fp32 = true;
  experts.router.scores = RouterScores::sigmoid;
  if (c.flag("norm_topk_prob", renormalize)) experts.router.renormalize = Renormalize::offset;
  experts.shared = llama_mlp(n);
  experts.shared->name = std::move(shared_name);
  experts.shared->width = c.size("shared_expert_intermediate_size", shared);
  return experts;
}

// Sinks everywhere; the first layers are dense and full.
ModelSpec flint(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 4, .head_dim = 128});
  n.norm = NormKind::rms_wide;
  const Experts experts = plainly_chosen_experts(c, n, 256, 1024, "shared_expert", true);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool full = i < 2 || i % 4 == 1 || i + 1 == n.layers;
    return std::string(full ? "full_attention" : "sliding_attention");
  });
  const bool listed = c.given("mlp_only_layers");
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   const bool routed = qwen_has_experts(c, i) && (listed || i > 1);
                   Attention attention = normed_attention(c, n);
                   attention.sinks = true;
                   attention.window = full ? 0 : c.count("sliding_window", 513);
                   if (full) attention.rotary.dims = 0;
                   const std::string name =
                       std::string(full ? "full" : "windowed") + (routed ? ", experts" : ", dense");
                   if (routed) return llama_layer(n, name, attention, experts);
                   return llama_layer(n, name, attention, llama_mlp(n));
                 }));
}

// Norms before and after; every layer has experts.
ModelSpec kolibri1(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4, .head_dim = 128, .has_width = false});
  Experts experts = plainly_chosen_experts(c, n, 384, 512, "shared_experts", false);
  experts.router.scores = RouterScores::sigmoid_of_picked;
  experts.router.correction_bias = "e_score_correction_bias";
  const auto window = c.optional_size("sliding_window", 513);
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string((i + 1) % 5 == 0 ? "full_attention" : "sliding_attention");
  });
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   Attention attention = normed_attention(c, n);
                   set_biases(attention, false, false);
                   attention.window = full ? 0 : window.value_or(0);
                   if (full && window) attention.rotary.dims = 0;
                   LayerKind layer = llama_layer(n, full ? "full" : "windowed", attention, experts);
                   layer.branches[0].after = {n.norm, "post_self_attn_layernorm"};
                   layer.branches[1].after = {n.norm, "post_mlp_layernorm"};
                   return layer;
                 }));
}

// What Beam's layers of a type have: positions or, where the file gives them as null, queries that
// grow with their places.
bool is_turned(const Config& c, const std::string& type) {
  const auto all = c.json().find("rope_parameters");
  if (!all || all->is_null()) return type == "sliding_attention";
  if (!all->is_object() || !all->json().contains(type)) {
    c.fail("rope_parameters", "has no entry for " + type);
  }
  return !all->json()[type].is_null();
}

// A gate of attention's result with a bias of each head, activations in fp32, branches and stream
// times numbers of the depth (transformers 5.23, modeling_beam.py).
ModelSpec beam(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128});
  n.norm = NormKind::rms_wide;
  Attention base = normed_attention(c, n);
  base.gate_name = "gate_proj";
  base.gate_bias = "gate_bias";
  base.rotary.fp32 = true;
  Mlp mlp = llama_mlp(n);
  mlp.wide = true;
  Experts experts = read_experts(c, n, "num_experts", 256, "num_experts_per_tok", 8,
                                 c.size("moe_intermediate_size", 2560));
  experts.gate = ExpertsGate::wide;
  experts.result_scaled = true;
  experts.router.fp32 = true;
  experts.router.scores = RouterScores::sigmoid;
  experts.router.correction_bias = "e_score_correction_bias";
  if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::in_place;
  read_groups(c, experts.router, 8, 4);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool full = (i + 1) % 6 == 0 || i + 1 == n.layers;
    return std::string(full ? "full_attention" : "sliding_attention");
  });
  const auto mlps = layer_types(
      c, n.layers, [](std::int64_t i) { return std::string(i < 3 ? "dense" : "sparse"); },
      "mlp_layer_types");
  const auto layer = [&](std::int64_t i) {
    const bool full = is_full(types, i), dense = mlps[static_cast<std::size_t>(i)] == "dense";
    Attention attention = base;
    attention.window = full ? 0 : c.count("sliding_window", 512);
    attention.rotary.table = full ? "rotary" : "rotary of windows";
    if (!is_turned(c, types[static_cast<std::size_t>(i)])) {
      attention.rotary.dims = 0;
      attention.scale_by_position = attention.fp32_position_scale = true;
      attention.position_scale_once = true;
    }
    const std::string name =
        std::string(full ? "full" : "windowed") + (dense ? ", dense" : ", experts");
    LayerKind kind = llama_layer(n, name, attention, experts);
    if (dense) kind.branches[1].body = mlp;
    kind.branches[0].after = {n.norm, "post_attention_layernorm"};
    kind.branches[1].before.name = "pre_feedforward_layernorm";
    kind.branches[1].after = {n.norm, "post_feedforward_layernorm"};
    for (Branch& branch : kind.branches) branch.multiplied = branch.stream_multiplied = true;
    return kind;
  };
  ModelSpec spec = decoder(n, Layers::of(n.layers, layer));
  spec.head.soft_cap = c.cap("final_logit_softcapping", 30);
  spec.head.fp32_cap = spec.head.soft_cap > 0;
  return spec;
}

}  // namespace

std::vector<Family> windowed_expert_families() {
  return {{"FlintForCausalLM", "flint", flint},
          {"Kolibri1ForCausalLM", "kolibri1", kolibri1},
          {"BeamForCausalLM", "beam", beam}};
}

}  // namespace shardsim::models
