// Gemma: RMS norms that scale by 1 + weight, embeddings scaled by sqrt(hidden) and tied to the
// head.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

ModelSpec with_scaled_embedding(ModelSpec spec) {
  std::get<TokenEmbedding>(spec.stacks[0].input).scaled = true;
  return spec;
}

Sizes gemma_sizes(const Config& c, std::int64_t kv_heads, std::string_view activation_keys) {
  Sizes n = read_sizes(c, {.kv_heads = kv_heads,
                           .head_dim = 256,
                           .tied = true,
                           .activation = "gelu_pytorch_tanh",
                           .activation_keys = activation_keys});
  n.norm = NormKind::rms_offset;
  return n;
}

ModelSpec gemma(const Config& c) {
  const Sizes n = gemma_sizes(c, 16, "hidden_activation|hidden_act");
  return with_scaled_embedding(
      decoder(n, llama_layer(n, "full", llama_attention(c, n), llama_mlp(n))));
}

// Four norms: before and after attention and MLP.
LayerKind layer(const Sizes& n, const std::string& name, const Attention& attention) {
  return {.name = name,
          .branches = {{.before = {n.norm, "input_layernorm"},
                        .body = attention,
                        .after = {n.norm, "post_attention_layernorm"}},
                       {.before = {n.norm, "pre_feedforward_layernorm"},
                        .body = llama_mlp(n),
                        .after = {n.norm, "post_feedforward_layernorm"}}}};
}

ModelSpec windowed(const Config& c, const Sizes& n, const Attention& attention,
                   const std::vector<std::string>& types, bool own_tables) {
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool full = is_full(types, i);
                             Attention a = attention;
                             a.window = full ? 0 : c.count("sliding_window", 4096);
                             if (own_tables) a.rotary.table = full ? "rotary" : "rotary of windows";
                             return layer(n, full ? "full" : "windowed", a);
                           }));
  return with_scaled_embedding(std::move(spec));
}

// Windows on every other layer, the first one among them; soft caps of scores and logits.
ModelSpec gemma2(const Config& c) {
  const Sizes n = gemma_sizes(c, 4, "hidden_activation|hidden_act");
  Attention attention = llama_attention(c, n);
  attention.soft_cap = c.cap("attn_logit_softcapping", 50);
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string((i + 1) % 2 != 0 ? "sliding_attention" : "full_attention");
  });
  ModelSpec spec = windowed(c, n, attention, types, /*own_tables=*/false);
  spec.head.soft_cap = c.cap("final_logit_softcapping", 30);
  return spec;
}

// Gemma 2 without the norms after attention and MLP.
ModelSpec vaultgemma(const Config& c) {
  ModelSpec spec = gemma2(c);
  for (LayerKind& kind : spec.stacks[0].kinds) {
    for (Branch& branch : kind.branches) branch.after = {};
  }
  return spec;
}

}  // namespace

// Five windowed layers, one full; norms of queries and keys.
ModelSpec gemma3_text(const Config& c) {
  const Sizes n = gemma_sizes(c, 4, "hidden_activation|hidden_act");
  Attention attention = llama_attention(c, n);
  attention.q_norm = {n.norm, "q_norm"};
  attention.k_norm = {n.norm, "k_norm"};
  attention.bidirectional = c.flag("use_bidirectional_attention", false);  // EmbeddingGemma
  const std::int64_t period = c.size("sliding_window_pattern", 6);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    return std::string((i + 1) % period != 0 ? "sliding_attention" : "full_attention");
  });
  ModelSpec spec = windowed(c, n, attention, types, /*own_tables=*/true);
  spec.head.soft_cap = c.cap("final_logit_softcapping", 0);
  return spec;
}

std::vector<Family> gemma_families() {
  return {{"GemmaForCausalLM", "gemma", gemma},
          {"Gemma2ForCausalLM", "gemma2", gemma2},
          {"VaultGemmaForCausalLM", "vaultgemma", vaultgemma},
          {"Gemma3ForCausalLM", "gemma3_text", gemma3_text}};
}

}  // namespace shardsim::models
