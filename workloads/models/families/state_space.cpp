// State-space models and hybrids of them with attention.
#include <cmath>
#include <optional>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// An integer, or "auto": ceil(hidden / 16).
std::int64_t step_rank(const Config& c, std::string_view key, std::int64_t hidden) {
  constexpr std::int64_t per_rank = 16;
  const auto value = c.json().find(key);
  if (!value || value->is_string()) return (hidden + per_rank - 1) / per_rank;
  return c.size(key);
}

// Around the layers of Mamba and Mamba-2: names, and a residual stream in fp32.
ModelSpec mamba_model(const Config& c, const LayerKind& layer) {
  Sizes n;
  n.hidden = c.needed("hidden_size|d_model", 768);
  n.layers = c.layers("num_hidden_layers|n_layer", 32);
  n.vocab = c.needed("vocab_size", 50280);
  ModelSpec spec = decoder(n, layer);
  Stack& stack = spec.stacks[0];
  stack.prefix = "backbone.layers";
  stack.norm = {NormKind::rms, "backbone.norm_f"};
  stack.fp32_residual = c.flag("residual_in_fp32", true);
  stack.input = TokenEmbedding{.name = "backbone.embeddings", .vocab = n.vocab, .width = n.hidden};
  return spec;
}

ModelSpec mamba(const Config& c) {
  const std::int64_t hidden = c.needed("hidden_size|d_model", 768);
  Mamba mixer;
  mixer.inner = c.size("intermediate_size|d_inner", hidden * c.size("expand", 2));
  mixer.state = c.size("state_size", 16);
  mixer.kernel = c.size("conv_kernel", 4);
  mixer.step_rank = step_rank(c, "time_step_rank", hidden);
  mixer.conv_bias = c.flag("use_conv_bias", true);
  mixer.bias = c.flag("use_bias", false);
  ModelSpec spec = mamba_model(
      c, {.name = "mamba", .branches = {{.before = {NormKind::rms, "norm"}, .body = mixer}}});
  set_tied(spec, c.flag("tie_word_embeddings", true));
  return spec;
}

// Mamba with norms of step size, B and C that have no parameters.
ModelSpec falcon_mamba(const Config& c) {
  c.pass_over({"use_falcon_mambapy", "mixer_rms_eps"});
  ModelSpec spec = mamba(c);
  std::get<Mamba>(spec.stacks[0].kinds[0].branches[0].body).fixed_norms = true;
  return spec;
}

Mamba2 read_mamba2(const Config& c, std::int64_t heads, std::string_view heads_key,
                   std::string_view head_dim_key, std::string_view state_key) {
  Mamba2 mixer;
  mixer.heads = c.size(heads_key, heads);
  mixer.head_dim = c.size(head_dim_key, 64);
  mixer.state = c.size(state_key, 128);
  mixer.groups = c.size("n_groups", 8);
  mixer.kernel = c.size("conv_kernel", 4);
  mixer.chunk = c.size("chunk_size", 256);
  mixer.conv_bias = c.flag("use_conv_bias", true);
  static_cast<void>(c.divided(heads_key, mixer.heads, "n_groups", mixer.groups));
  return mixer;
}

ModelSpec mamba2(const Config& c) {
  Mamba2 mixer = read_mamba2(c, 128, "num_heads", "head_dim", "state_size");
  c.pass_over({"time_step_rank"});  // of Mamba; each head has one step size
  mixer.bias = mixer.out_bias = c.flag("use_bias", false);
  const auto inner = static_cast<std::int64_t>(
      c.ratio("expand", 2) * static_cast<double>(c.needed("hidden_size|d_model", 4096)));
  if (inner != mixer.inner()) {
    c.fail("num_heads", "num_heads * head_dim is not expand * hidden_size");
  }
  ModelSpec spec = mamba_model(
      c, {.name = "mamba", .branches = {{.before = {NormKind::rms, "norm"}, .body = mixer}}});
  set_tied(spec, c.flag("tie_word_embeddings", false));
  return spec;
}

// Attention every attn_layer_period-th layer, experts every expert_layer_period-th.
ModelSpec jamba(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8});
  Attention attention = llama_attention(c, n);
  attention.rotary.dims = 0;
  set_biases(attention, false, false);
  Mamba mixer;
  mixer.name = "mamba";
  mixer.inner = n.hidden * c.size("mamba_expand", 2);
  mixer.state = c.size("mamba_d_state", 16);
  mixer.kernel = c.size("mamba_d_conv", 4);
  mixer.step_rank = step_rank(c, "mamba_dt_rank", n.hidden);
  mixer.conv_bias = c.flag("mamba_conv_bias", true);
  mixer.bias = c.flag("mamba_proj_bias", false);
  mixer.norms = true;
  Mlp mlp = llama_mlp(n);
  mlp.name = "feed_forward";
  Experts experts;
  experts.name = "feed_forward";
  experts.experts = c.size("num_experts|num_local_experts", 16);
  experts.per_token = c.size("num_experts_per_tok", 2);
  experts.width = n.width;
  experts.activation = n.activation;
  experts.router = {.name = "router", .cast_back = true};
  const auto is_at = [&](std::int64_t i, const char* period, std::int64_t period_default,
                         const char* offset, std::int64_t offset_default) {
    return i % c.size(period, period_default) == c.count(offset, offset_default);
  };
  ModelSpec spec =
      decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                const bool attends = is_at(i, "attn_layer_period", 8, "attn_layer_offset", 4);
                const bool routed = experts.experts > 1 &&
                                    is_at(i, "expert_layer_period", 2, "expert_layer_offset", 1);
                LayerKind layer = llama_layer(n, attends ? "attention" : "mamba", attention, mlp);
                if (!attends) layer.branches[0].body = mixer;
                if (routed) {
                  layer.name += ", experts";
                  layer.branches[1].body = experts;
                }
                layer.branches[1].before.name = "pre_ff_layernorm";
                return layer;
              }));
  spec.stacks[0].norm.name = "model.final_layernorm";
  return spec;
}

// Every full_attention_interval-th layer attends, with a gate; the others run the delta rule.
ModelSpec qwen_hybrid(const Config& c, const Sizes& n, const std::optional<Experts>& experts,
                      DeltaProjections projections) {
  Attention attention = llama_attention(c, n);
  attention.gate = true;
  attention.q_norm = {n.norm, "q_norm"};
  attention.k_norm = {n.norm, "k_norm"};
  attention.rotary.dims = static_cast<std::int64_t>(static_cast<double>(n.head_dim) *
                                                    c.rotary_number("partial_rotary_factor", 0.25));
  attention.rotary.concatenated = true;
  DeltaNet net;
  net.key_heads = c.size("linear_num_key_heads", 16);
  net.key_dim = c.size("linear_key_head_dim", 128);
  net.value_heads = c.size("linear_num_value_heads", 32);
  net.value_dim = c.size("linear_value_head_dim", 128);
  net.kernel = c.size("linear_conv_kernel_dim", 4);
  net.projections = projections;
  const std::int64_t interval = c.size("full_attention_interval", 4);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    return std::string((i + 1) % interval != 0 ? "linear_attention" : "full_attention");
  });
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool attends = is_full(types, i);
                   LayerKind layer = llama_layer(n, attends ? "attention" : "delta rule", attention,
                                                 llama_mlp(n));
                   if (!attends) layer.branches[0].body = net;
                   if (experts && qwen_has_experts(c, i)) layer.branches[1].body = *experts;
                   return layer;
                 }));
}

Sizes qwen_hybrid_sizes(const Config& c, std::int64_t kv_heads, bool has_width) {
  Sizes n = read_sizes(c, {.kv_heads = kv_heads, .head_dim = 256, .has_width = has_width});
  n.norm = NormKind::rms_offset;
  return n;
}

ModelSpec qwen3_next(const Config& c) {
  const Sizes n = qwen_hybrid_sizes(c, 2, /*has_width=*/true);
  const std::int64_t shared = c.size("shared_expert_intermediate_size", 512);
  const Experts experts = qwen_experts(c, n, 512, 10, 512, shared, /*renormalize=*/true);
  return qwen_hybrid(c, n, experts, DeltaProjections::qkvz_ba);
}

ModelSpec qwen3_5(const Config& c) {
  return qwen_hybrid(c, qwen_hybrid_sizes(c, 4, /*has_width=*/true), std::nullopt,
                     DeltaProjections::qkv_z_b_a);
}

ModelSpec qwen3_5_moe(const Config& c) {
  const Sizes n = qwen_hybrid_sizes(c, 2, /*has_width=*/false);
  const std::int64_t shared = c.size("shared_expert_intermediate_size", 512);
  Experts experts = qwen_experts(c, n, 256, 8, 512, shared, /*renormalize=*/true);
  experts.router.renormalize = Renormalize::in_place;
  return qwen_hybrid(c, n, experts, DeltaProjections::qkv_z_b_a);
}

// Letters of each layer; newer files list words in their place.
std::string nemotron_pattern(const Config& c) {
  std::string pattern = c.text("hybrid_override_pattern", "");
  if (!pattern.empty()) return pattern;
  for (const std::string& type : c.texts("layers_block_type|layer_types")) {
    const bool mixes = type == "mamba" || type == "linear_attention";
    const bool sees = type == "attention" || type == "full_attention";
    pattern += mixes ? 'M' : sees ? '*' : type == "moe" ? 'E' : '-';
  }
  return pattern;
}

Experts nemotron_experts(const Config& c, const Sizes& n, const Mlp& shared) {
  Experts experts;
  experts.name = "mixer";
  experts.experts = c.size("n_routed_experts", 8);
  experts.per_token = c.size("num_experts_per_tok", 2);
  experts.width = c.size("moe_intermediate_size", 7688);
  experts.activation = n.activation;
  experts.gate = ExpertsGate::plain;
  experts.gate_up = "up_proj";
  experts.router.scores = RouterScores::sigmoid;
  experts.router.fp32 = true;
  experts.router.correction_bias = "e_score_correction_bias";
  if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::in_place;
  read_groups(c, experts.router, 1, 1);
  experts.latent = c.optional_size("moe_latent_size", std::nullopt).value_or(0);
  experts.latent_bias = shared.bias;
  static_cast<void>(c.size("n_shared_experts", 1));  // in files; the class has one
  const std::int64_t width = c.count("moe_shared_expert_intermediate_size", 7688);
  if (width == 0) return experts;
  experts.shared = shared;
  experts.shared->name = "shared_experts";
  experts.shared->width = width;
  return experts;
}

// One mixer a layer, as hybrid_override_pattern says: M Mamba-2, * attention, - MLP, E experts.
ModelSpec nemotron_h(const Config& c) {
  // Layers of multi-token prediction are left out; which kernels overlap is not counted.
  c.pass_over({"mtp_layers_block_type", "moe_shared_expert_overlap"});
  // What the class does not read.
  c.pass_over({"attention_bias", "mamba_proj_bias", "sliding_window", "hidden_dropout",
               "tie_word_embeddings"});
  const std::string pattern = nemotron_pattern(c);
  SizeDefaults defaults{.kv_heads = 8, .head_dim = 128};
  defaults.activation = "relu2";
  defaults.activation_keys = "mlp_hidden_act";
  if (!pattern.empty()) defaults.layers = static_cast<std::int64_t>(pattern.size());
  Sizes n = read_sizes(c, defaults);
  n.norm = NormKind::rms_cast;
  Attention attention = llama_attention(c, n);
  attention.name = "mixer";
  attention.rotary.dims = 0;
  set_biases(attention, false, false);
  Mamba2 mixer =
      read_mamba2(c, 128, "mamba_num_heads", "mamba_head_dim", "ssm_state_size|state_size");
  mixer.bias = mixer.out_bias = c.flag("use_bias", false);
  Mlp mlp = llama_mlp(n);
  mlp.name = "mixer";
  mlp.form = MlpForm::plain;
  mlp.bias = c.flag("mlp_bias", false);
  const Experts experts = nemotron_experts(c, n, mlp);
  if (static_cast<std::int64_t>(pattern.size()) != n.layers) {
    c.fail("hybrid_override_pattern", "has not one letter for each layer");
  }
  ModelSpec spec = decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) -> LayerKind {
        const char letter = pattern[static_cast<std::size_t>(i)];
        LayerKind layer{.name = "mamba", .branches = {{.before = {n.norm, "norm"}, .body = mixer}}};
        if (letter == 'M') return layer;
        if (letter == '*') {
          layer.name = "attention";
          layer.branches[0].body = attention;
        } else if (letter == '-') {
          layer.name = "mlp";
          layer.branches[0].body = mlp;
        } else if (letter == 'E') {
          layer.name = "experts";
          layer.branches[0].body = experts;
        } else {
          c.fail("hybrid_override_pattern", "has a letter that is none of M, *, - and E");
        }
        return layer;
      }));
  spec.stacks[0].norm.name = "model.norm_f";
  std::get<TokenEmbedding>(spec.stacks[0].input).name = "model.embeddings";
  spec.stacks[0].fp32_residual = c.flag("residual_in_fp32", false);
  set_tied(spec, false);
  return spec;
}

}  // namespace

std::vector<Family> state_space_families() {
  return {{"MambaForCausalLM", "mamba", mamba},
          {"FalconMambaForCausalLM", "falcon_mamba", falcon_mamba},
          {"Mamba2ForCausalLM", "mamba2", mamba2},
          {"JambaForCausalLM", "jamba", jamba},
          {"Qwen3NextForCausalLM", "qwen3_next", qwen3_next},
          {"Qwen3_5ForCausalLM", "qwen3_5_text", qwen3_5},
          {"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", qwen3_5_moe},
          {"NemotronHForCausalLM", "nemotron_h", nemotron_h}};
}

}  // namespace shardsim::models
