// Hybrids of attention with Mamba-2 or short convolutions: Bamba, Granite 4, Falcon-H1, LFM2.
#include <algorithm>
#include <optional>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// Their common keys; a head's size is a number or "auto".
Mamba2 read_mixer(const Config& c, std::int64_t inner) {
  Mamba2 mixer;
  mixer.name = "mamba";
  mixer.heads = c.size("mamba_n_heads", 128);
  const auto head = c.json().find("mamba_d_head");
  mixer.head_dim = head && !head->is_string()
                       ? c.size("mamba_d_head")
                       : c.divided("mamba_expand", inner, "mamba_n_heads", mixer.heads);
  mixer.state = c.size("mamba_d_state", 256);
  mixer.groups = c.size("mamba_n_groups", 1);
  mixer.kernel = c.size("mamba_d_conv", 4);
  mixer.chunk = c.size("mamba_chunk_size", 256);
  mixer.conv_bias = c.flag("mamba_conv_bias", true);
  mixer.bias = mixer.out_bias = c.flag("mamba_proj_bias", false);
  if (mixer.inner() != inner) {
    c.fail("mamba_n_heads", "mamba_n_heads * mamba_d_head is not the mixer's width");
  }
  static_cast<void>(c.divided("mamba_n_heads", mixer.heads, "mamba_n_groups", mixer.groups));
  return mixer;
}

bool contains(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Older files say "mamba" and "attention".
bool attends(const std::string& type) { return type == "full_attention" || type == "attention"; }

ModelSpec bamba(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8});
  const Mamba2 mixer = read_mixer(c, n.hidden * c.size("mamba_expand", 2));
  c.pass_over({"attn_rotary_emb"});  // half a head, which the class turns in any case
  Attention attention = llama_attention(c, n);
  // The class says 0.5, whatever the top of a file says.
  attention.rotary.dims =
      c.given("rope_parameters") ? rotary_dims(c, n.head_dim, 0.5) : n.head_dim / 2;
  attention.rotary.concatenated = true;
  Mlp mlp = llama_mlp(n);
  mlp.name = "feed_forward";
  mlp.bias = c.flag("mlp_bias", false);
  const std::vector<std::int64_t> attending = c.integers("attn_layer_indices");
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             LayerKind layer = llama_layer(
                                 n, contains(attending, i) ? "attention" : "mamba", attention, mlp);
                             if (!contains(attending, i)) layer.branches[0].body = mixer;
                             layer.branches[1].before.name = "pre_ff_layernorm";
                             return layer;
                           }));
  spec.stacks[0].norm.name = "model.final_layernorm";
  return spec;
}

// Mamba-2 or attention, then experts with a shared MLP beside them, or that MLP alone. No positions
// unless they are asked for.
ModelSpec granitemoehybrid(const Config& c) {
  const Sizes n = read_sizes(c, {});
  const Mamba2 mixer = read_mixer(c, n.hidden * c.size("mamba_expand", 2));
  Attention attention = llama_attention(c, n);
  if (c.text("position_embedding_type", "") != "rope") attention.rotary.dims = 0;
  Mlp shared = llama_mlp(n);
  shared.name = "shared_mlp";
  shared.form = MlpForm::fused_gate;
  shared.width = c.size("shared_intermediate_size", 1024);
  shared.up = "input_linear";
  shared.down = "output_linear";
  Body feed_forward = shared;
  if (c.count("num_local_experts", 8) > 0) {
    Experts experts = granite_experts(c, n);
    experts.shared = shared;
    experts.shared_outside = true;
    feed_forward = experts;
  }
  const auto types =
      layer_types(c, n.layers, [](std::int64_t) { return std::string("linear_attention"); });
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool full = attends(types[static_cast<std::size_t>(i)]);
                             LayerKind layer = llama_layer(n, full ? "attention" : "mamba",
                                                           attention, feed_forward);
                             if (!full) layer.branches[0].body = mixer;
                             return layer;
                           }));
  set_multipliers(c, spec);
  return spec;
}

// Attention and Mamba-2 side by side in every layer.
ModelSpec falcon_h1(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8});
  // Numbers that are multiplied by in any case, and when a norm is gated.
  c.pass_over({"attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier",
               "key_multiplier", "lm_head_multiplier", "mlp_multipliers", "ssm_in_multiplier",
               "ssm_multipliers", "ssm_out_multiplier", "mamba_norm_before_gate"});
  const auto inner = c.optional_size("mamba_d_ssm", 1024);
  Mamba2 mixer = read_mixer(c, inner.value_or(n.hidden * c.size("mamba_expand", 2)));
  mixer.out_bias = c.flag("projectors_bias", false);
  mixer.norm = c.flag("mamba_rms_norm", false);
  mixer.scaled_projection = true;
  Mlp mlp = llama_mlp(n);
  mlp.name = "feed_forward";
  mlp.bias = c.flag("mlp_bias", false);
  LayerKind layer = llama_layer(n, "attention and mamba", llama_attention(c, n), mlp);
  layer.branches[0].beside = mixer;
  layer.branches[1].before.name = "pre_ff_layernorm";
  ModelSpec spec = decoder(n, layer);
  spec.stacks[0].norm.name = "model.final_layernorm";
  std::get<TokenEmbedding>(spec.stacks[0].input).scaled = true;
  return spec;
}

std::int64_t lfm2_width(const Config& c) {
  std::int64_t width = c.size("block_ff_dim|intermediate_size", 12288);
  c.pass_over({"block_multiple_of", "block_ffn_dim_multiplier"});
  if (!c.flag("block_auto_adjust_ff_dim", true)) return width;
  const std::int64_t multiple = c.size("block_multiple_of", 256);
  const std::int64_t two_thirds = 2 * width / 3;
  width = static_cast<std::int64_t>(c.ratio("block_ffn_dim_multiplier", 1) *
                                    static_cast<double>(two_thirds));
  return (width + multiple - 1) / multiple * multiple;
}

// Short convolutions but for the layers that attend.
ModelSpec lfm2_like(const Config& c, std::int64_t width, const std::optional<Experts>& experts,
                    std::int64_t dense) {
  // Widths that hidden_size says, how weights start, what the class does in any case.
  c.pass_over({"block_dim", "block_mlp_init_scale", "block_out_init_scale", "block_norm_eps",
               "block_use_swiglu", "block_use_xavier_init", "conv_dim", "conv_dim_out",
               "conv_use_xavier_init", "use_pos_enc", "num_heads"});
  Sizes n = read_sizes(c, {.kv_heads = 8, .has_width = false});
  n.tied = c.flag("tie_embedding|tie_word_embeddings", true);
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.o = "out_proj";
  attention.q_norm = {n.norm, "q_layernorm"};
  attention.k_norm = {n.norm, "k_layernorm"};
  ShortConvolution convolution;
  convolution.kernel = c.size("conv_L_cache", 3);
  convolution.bias = c.flag("conv_bias", false);
  Mlp mlp;
  mlp.name = "feed_forward";
  mlp.width = width;
  mlp.gate = "w1";
  mlp.up = "w3";
  mlp.down = "w2";
  const std::vector<std::int64_t> attending = c.integers("full_attn_idxs");
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool full = !c.given("full_attn_idxs") || contains(attending, i);
    return std::string(full ? "full_attention" : "conv");
  });
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool full = attends(types[static_cast<std::size_t>(i)]);
                             LayerKind layer =
                                 llama_layer(n, full ? "attention" : "convolution", attention, mlp);
                             if (!full) layer.branches[0].body = convolution;
                             if (experts && i >= dense) layer.branches[1].body = *experts;
                             layer.branches[0].before.name = "operator_norm";
                             layer.branches[1].before.name = "ffn_norm";
                             return layer;
                           }));
  spec.stacks[0].norm.name = "model.embedding_norm";
  return spec;
}

std::string lfm3_type(std::int64_t layer) {
  if (layer % 4 == 2) return "full_attention";
  return layer > 0 && layer % 4 == 0 ? "sliding_attention" : "conv";
}

// A gate of each head, norms of what a branch gives; layers that attend have windows, too.
ModelSpec lfm3(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4,
                                 .head_dim = 128,
                                 .tied = true,
                                 .hidden = 2048,
                                 .width = 7680,
                                 .vocab = 128000});
  Attention base = llama_attention(c, n);
  base.q_norm = {n.norm, "q_norm"};
  base.k_norm = {n.norm, "k_norm"};
  base.rotary.fp32 = true;
  // Frequencies of the other half are zero ("proportional"): the whole head is turned.
  static_cast<void>(c.rotary_number("full_attention", "partial_rotary_factor", 0.5));
  if (c.flag("use_attention_gate", true)) {
    base.gate_name = "g_proj";
    base.gate_per_head = true;
  }
  ShortConvolution convolution;
  convolution.kernel = c.size("conv_L_cache", 7);
  convolution.padded = true;
  convolution.bias = c.flag("conv_bias", false);
  Mlp mlp = llama_mlp(n);
  mlp.name = "feed_forward";
  mlp.gate = "w1";
  mlp.up = "w3";
  mlp.down = "w2";
  const bool normed = c.flag("use_sandwich_norm", true);
  const auto types = layer_types(c, n.layers, lfm3_type);
  ModelSpec spec =
      decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                const bool full = is_full(types, i);
                const bool convolves = types[static_cast<std::size_t>(i)] == "conv";
                Attention attention = base;
                attention.window = full ? 0 : c.count("sliding_window", 256);
                attention.rotary.table = full ? "rotary" : "rotary of windows";
                const char* name = convolves ? "convolution" : full ? "attention" : "windowed";
                LayerKind layer = llama_layer(n, name, attention, mlp);
                if (convolves) layer.branches[0].body = convolution;
                layer.branches[0].before.name = "operator_norm";
                layer.branches[1].before.name = "ffn_norm";
                if (normed) {
                  layer.branches[0].after = {n.norm, "post_operator_norm"};
                  layer.branches[1].after = {n.norm, "post_ffn_norm"};
                }
                return layer;
              }));
  spec.stacks[0].norm.name = "model.embedding_norm";
  return spec;
}

ModelSpec lfm2(const Config& c) { return lfm2_like(c, lfm2_width(c), std::nullopt, 0); }

// The first layers have MLPs, the others experts.
ModelSpec lfm2_moe(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 8, .has_width = false});
  n.activation = "silu";
  Experts experts = read_experts(c, n, "num_experts", 32, "num_experts_per_tok", 4,
                                 c.size("moe_intermediate_size", 1792));
  experts.name = "feed_forward";
  experts.router.scores = RouterScores::sigmoid;
  if (c.flag("use_expert_bias", true)) experts.correction_bias = "expert_bias";
  if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::offset;
  return lfm2_like(c, c.size("intermediate_size", 7168), experts, c.count("num_dense_layers", 2));
}

}  // namespace

std::vector<Family> hybrid_families() {
  return {{"BambaForCausalLM", "bamba", bamba},
          {"GraniteMoeHybridForCausalLM", "granitemoehybrid", granitemoehybrid},
          {"FalconH1ForCausalLM", "falcon_h1", falcon_h1},
          {"Lfm2ForCausalLM", "lfm2", lfm2},
          {"Lfm3ForCausalLM", "lfm3", lfm3},
          {"Lfm2MoeForCausalLM", "lfm2_moe", lfm2_moe}};
}

}  // namespace shardsim::models
