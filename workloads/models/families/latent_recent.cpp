// Latent attention of 2026 with an index of keys: A.X K2, whose norms and queries are gated, and
// dots 3 Note, whose windowed layers have sizes of their own.
#include <string>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

std::vector<std::string> mlp_types(const Config& c, std::int64_t layers) {
  const std::int64_t first = c.count("first_k_dense_replace", 1);
  const std::int64_t step = c.size("moe_layer_freq", 1);
  return layer_types(
      c, layers,
      [&](std::int64_t i) { return std::string(i >= first && i % step == 0 ? "sparse" : "dense"); },
      "mlp_layer_types");
}

bool is_dense(const std::vector<std::string>& types, std::int64_t layer) {
  return types[static_cast<std::size_t>(layer)] == "dense";
}

void read_index(const Config& c, LatentAttention& attention, std::int64_t heads) {
  KeyIndex& index = attention.index.emplace();
  index.heads = c.size("index_n_heads", heads);
  index.head_dim = c.size("index_head_dim", 128);
  attention.chosen = c.size("index_topk", 2048);
}

void gate_norm(const Config& c, Branch& branch) {
  branch.before_gate = NormGate{branch.before.name + ".mlp"};
  branch.before_gate->rank = c.size("gated_norm_rank", 16);
  branch.before.name += ".norm";
}

// Defaults: transformers 5.23, configuration_axk2.py.
ModelSpec axk2(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32, .head_dim = 64});
  LatentAttention attention = read_latent(c, n);
  attention.q_rank = c.size("q_lora_rank", 384);
  attention.kv_rank = c.size("kv_lora_rank", 128);
  attention.nope_dim = c.size("qk_nope_head_dim", 64);
  attention.rope_dim = c.size("qk_rope_head_dim", 32);
  attention.value_dim = c.size("v_head_dim", 64);
  attention.gated_queries = true;
  read_index(c, attention, 16);
  c.pass_over(
      {"layer_types", "index_layer_types", "qk_head_dim", "head_dim", "n_group", "topk_group"});
  if (c.given("n_group") != c.given("topk_group")) {
    c.fail("n_group", "and topk_group are given together or not at all");
  }
  Experts experts = deepseek_experts(c, n, 128, 8, 512, 1);
  experts.router.scores = RouterScores::sigmoid;
  experts.router.correction_bias = "e_score_correction_bias";
  if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::in_place;
  if (c.given("n_group")) read_groups(c, experts.router, 1, 1);
  const auto mlps = mlp_types(c, n.layers);
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool dense = is_dense(mlps, i);
                   LayerKind layer = dense ? latent_layer(n, "dense", attention, llama_mlp(n))
                                           : latent_layer(n, "experts", attention, experts);
                   gate_norm(c, layer.branches[0]);
                   if (!dense) gate_norm(c, layer.branches[1]);
                   return layer;
                 }));
}

// What a windowed layer of dots 3 Note is made of: as the file says of it alone or, of older files,
// under keys of windows.
LatentAttention windowed(const Config& c, const LatentAttention& base, std::int64_t layer) {
  LatentAttention a = base;
  a.index.reset();
  a.chosen = 0;
  a.fp32_rotary = false;
  a.table = "rotary of windows";
  const auto all = c.sub("per_layer_config");
  const auto own = all ? own_of_layer(*all, layer) : std::nullopt;
  const auto size = [&](const std::string& key, std::int64_t usual) {
    return own ? own->size(key, usual) : c.size("swa_" + key, usual);
  };
  if (all && !own) return a;
  a.heads = size("num_attention_heads", 64);
  a.q_rank = size("q_lora_rank", 1024);
  a.kv_rank = size("kv_lora_rank", 1024);
  a.nope_dim = size("qk_nope_head_dim", 192);
  a.rope_dim = size("qk_rope_head_dim", size("head_dim", 256) - a.nope_dim);
  a.value_dim = size("v_head_dim", 128);
  static_cast<void>(size("num_key_value_heads", a.heads));
  return a;
}

ModelSpec dots3_note(const Config& c) {
  const Sizes n = read_sizes(c, {.head_dim = 256});
  LatentAttention base = read_latent(c, n);
  base.q_rank = c.size("q_lora_rank", 1024);
  base.scaled = true;
  base.rope_norm = {n.norm, "k_rope_only_layernorm"};
  base.gate = "g_proj";
  base.gate_per_head = base.narrow_gate = true;
  const bool uses_index = c.flag("use_dsa", true);
  const bool slides = c.flag("use_sliding_window", true);
  c.pass_over({"head_dim", "qk_head_dim", "sliding_window_size", "index_n_heads", "index_head_dim",
               "index_topk", "mlp_bias", "first_k_dense_replace", "swa_rope_theta"});
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    if (slides && i >= 2 && i % 4 != 1) return std::string("sliding_attention");
    return std::string(uses_index ? "indexed_attention" : "full_attention");
  });
  for (const std::string& type : types) {  // computed of the sizes, whatever the file says
    static_cast<void>(c.rotary_number(type, "partial_rotary_factor", 1));
  }
  Experts experts = sigmoid_experts(c, n, 256, 8, 1536, 1, true);
  experts.shared->width =
      c.size("shared_experts_intermediate_size|moe_shared_expert_intermediate_size", 1536) *
      c.size("n_shared_experts", 1);
  const auto mlps = mlp_types(c, n.layers);
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const std::string& type = types[static_cast<std::size_t>(i)];
                   const bool full = type == "full_attention";
                   LatentAttention attention = base;
                   if (type == "sliding_attention") {
                     attention = windowed(c, base, i);
                   } else if (!full || (uses_index && c.given("use_dsa"))) {
                     read_index(c, attention, 64);
                     attention.fp32_rotary = true;
                   }
                   const std::string name = type.substr(0, type.find('_')) +
                                            (is_dense(mlps, i) ? ", dense" : ", experts");
                   if (is_dense(mlps, i)) return latent_layer(n, name, attention, llama_mlp(n));
                   return latent_layer(n, name, attention, experts);
                 }));
}

}  // namespace

std::vector<Family> latest_latent_families() {
  return {{"AXK2ForCausalLM", "axk2", axk2},
          {"Dots3NoteForCausalLM", "dots3_note_text", dots3_note}};
}

}  // namespace shardsim::models
