// Decoders whose layers run the delta rule but for some that attend: OLMo Hybrid, Kimi Linear.
#include <algorithm>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// OLMo 3's attention and norms behind it; layers of the delta rule have theirs before.
ModelSpec olmo_hybrid(const Config& c) {
  Sizes n = read_sizes(c, {});
  n.norm = NormKind::rms_wide;
  Attention attention = llama_attention(c, n);
  attention.q_norm = {n.norm, "q_norm"};
  attention.k_norm = {n.norm, "k_norm"};
  attention.norm_whole = true;
  if (c.rotary_number("rope_theta", 0) == 0) attention.rotary.dims = 0;
  DeltaNet net;
  net.projections = DeltaProjections::each;
  net.norm = "o_norm";
  net.out = "o_proj";
  net.key_heads = c.size("linear_num_key_heads", n.heads);
  net.value_heads = c.size("linear_num_value_heads", n.heads);
  net.key_dim = c.size("linear_key_head_dim", 3 * n.hidden / (4 * net.key_heads));
  net.value_dim = c.size("linear_value_head_dim", 2 * net.key_dim);
  net.kernel = c.size("linear_conv_kernel_dim", 4);
  net.doubled_steps = c.flag("linear_allow_neg_eigval", true);
  c.pass_over({"linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max",
               "linear_dt_init_floor"});  // how weights are initialized
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool attends = i % 4 == 3 || (n.layers < 4 && i + 1 == n.layers);
    return std::string(attends ? "full_attention" : "linear_attention");
  });
  return decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        if (!is_full(types, i)) {
          LayerKind layer = llama_layer(n, "delta rule", attention, llama_mlp(n));
          layer.branches[0].body = net;
          return layer;
        }
        return LayerKind{
            .name = "attention",
            .branches = {{.body = attention, .after = {n.norm, "post_attention_layernorm"}},
                         {.body = llama_mlp(n), .after = {n.norm, "post_feedforward_layernorm"}}}};
      }));
}

// Its layers, counted from 1 in files of the hub.
std::vector<std::string> kimi_layer_types(const Config& c, std::int64_t layers) {
  const std::optional<Config> linear = c.sub("linear_attn_config");
  const std::vector<std::int64_t> full =
      linear ? linear->integers("full_attn_layers") : std::vector<std::int64_t>{};
  if (linear) linear->pass_over({"kda_layers"});  // the others
  return layer_types(c, layers, [&](std::int64_t i) {
    const bool attends = full.empty() ? i > 0 && i % 4 == 0
                                      : std::find(full.begin(), full.end(), i + 1) != full.end();
    return std::string(attends ? "full_attention" : "linear_attention");
  });
}

// Latent attention in some layers, the delta rule in others; DeepSeek-V3's experts behind dense
// layers.
ModelSpec latent_and_delta(const Config& c, const Sizes& n, const LatentAttention& attention,
                           const DeltaNet& net, const Experts& experts,
                           const std::vector<std::string>& types, std::int64_t dense) {
  const auto mlps = layer_types(
      c, n.layers, [&](std::int64_t i) { return std::string(i < dense ? "dense" : "sparse"); },
      "mlp_layer_types");
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool is_dense = mlps[static_cast<std::size_t>(i)] == "dense";
                   const bool full = is_full(types, i);
                   const std::string name = std::string(full ? "attention" : "delta rule") +
                                            (is_dense ? ", dense" : ", experts");
                   LayerKind layer = latent_layer(n, name, attention, experts);
                   if (!full) layer.branches[0].body = net;
                   if (is_dense) layer.branches[1].body = llama_mlp(n);
                   return layer;
                 }));
}

// Ling 3: gates and decays without a narrow product before, latent attention whose heads have a
// gate each. Defaults: transformers 5.23, configuration_bailing_hybrid.py.
ModelSpec bailing_hybrid(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 32});
  n.tied = false;  // whatever the file says
  LatentAttention attention = read_latent(c, n);
  attention.q_rank = 0;
  attention.gate = "g_proj";
  attention.gate_per_head = true;
  DeltaNet net;
  net.name = "self_attn";
  net.projections = DeltaProjections::whole_channels;
  net.norm = "o_norm";
  net.out = "o_proj";
  net.key_heads = net.value_heads = c.size("linear_num_heads", n.heads);
  // A file that transformers wrote has in "head_dim" what is turned of latent attention.
  net.key_dim = net.value_dim =
      c.given("linear_head_dim") ? c.size("linear_head_dim") : c.size("head_dim", 128);
  net.kernel = c.size("short_conv_kernel_size|linear_conv_kernel_dim", 4);
  net.bounded = c.flag("kda_safe_gate", true);
  c.pass_over({"kda_lower_bound", "layer_group_size", "head_dim", "moe_renormalize",
               "model_max_length", "num_shared_experts", "num_experts_per_token",
               "num_local_experts", "mtp_loss_scaling_factor", "num_mtp_layers"});
  Experts experts = read_experts(c, n, "num_experts|num_local_experts", 512,
                                 "num_experts_per_token|num_experts_per_tok", 8,
                                 c.size("moe_intermediate_size", 768));
  experts.router.fp32 = true;
  experts.router.scores = RouterScores::sigmoid;
  experts.router.correction_bias = "e_score_correction_bias";
  experts.router.correction_flat = true;
  if (c.flag("moe_renormalize|norm_topk_prob", true)) {
    experts.router.renormalize = Renormalize::offset;
  }
  read_groups(c, experts.router, 8, 4);
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_experts";
  experts.shared->width = experts.width * c.size("num_shared_experts|n_shared_experts", 1);
  const std::int64_t group = c.size("layer_group_size", 6);
  const std::int64_t dense = c.count("first_k_dense_replace", 2);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    return std::string((i + 1) % group == 0 ? "full_attention" : "linear_attention");
  });
  return latent_and_delta(c, n, attention, net, experts, types, dense);
}

// Kimi's delta rule; latent attention without positions.
ModelSpec kimi_linear(const Config& c) {
  Sizes n = read_sizes(c, {});
  n.tied = false;  // whatever the file says
  LatentAttention attention = read_latent(c, n);
  attention.q_rank = c.optional_size("q_lora_rank", std::nullopt).value_or(0);
  attention.turned = false;
  const std::optional<Config> linear = c.sub("linear_attn_config");
  const auto of_linear = [&](const char* key, const char* own, std::int64_t otherwise) {
    const std::int64_t size = c.size(own, otherwise);
    return linear ? linear->size(key, size) : size;
  };
  DeltaNet net;
  net.name = "self_attn";
  net.projections = DeltaProjections::channels;
  net.norm = "o_norm";
  net.out = "o_proj";
  net.key_heads = net.value_heads = of_linear("num_heads", "linear_num_heads", 32);
  net.key_dim = net.value_dim = of_linear("head_dim", "linear_head_dim", 128);
  net.kernel = of_linear("short_conv_kernel_size", "linear_conv_kernel_dim", 4);
  Experts experts = read_experts(c, n, "num_local_experts|num_experts", 256,
                                 "num_experts_per_tok|num_experts_per_token", 8,
                                 c.size("moe_intermediate_size", 1024));
  experts.router.fp32 = true;
  experts.router.scores = RouterScores::sigmoid;
  experts.router.correction_bias = "e_score_correction_bias";
  if (c.flag("norm_topk_prob|moe_renormalize", true)) {
    experts.router.renormalize = Renormalize::in_place;
  }
  read_groups(c, experts.router, 1, 1);
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_experts";
  experts.shared->width = experts.width * c.size("n_shared_experts|num_shared_experts", 1);
  // How tokens choose; positions that the class has not.
  c.pass_over({"use_grouped_topk", "mla_use_nope", "moe_router_activation_func",
               "num_nextn_predict_layers", "head_dim", "rope_theta", "rope_scaling",
               "model_max_length", "qk_head_dim", "moe_layer_freq"});
  const std::int64_t dense = c.count("first_k_dense_replace", 1);
  const auto types = kimi_layer_types(c, n.layers);
  return latent_and_delta(c, n, attention, net, experts, types, dense);
}

}  // namespace

std::vector<Family> delta_rule_families() {
  return {{"OlmoHybridForCausalLM", "olmo_hybrid", olmo_hybrid},
          {"BailingHybridForCausalLM", "bailing_hybrid", bailing_hybrid},
          {"KimiLinearForCausalLM", "kimi_linear", kimi_linear}};
}

}  // namespace shardsim::models
