// Decoders whose mixers are sketches: MiniMax-Text (lightning attention), DiffLlama.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

LightningAttention read_lightning(const Config& c, const Sizes& n) {
  LightningAttention lightning;
  lightning.heads = n.heads;
  lightning.head_dim = n.head_dim;
  lightning.block = c.size("block_size", 256);
  lightning.activation = n.activation;
  return lightning;
}

// Branches are added to what their norms give; layers are lightning or softmax attention, with
// experts in each. Defaults: transformers 5.23, configuration_minimax.py.
ModelSpec minimax(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8});
  const LightningAttention lightning = read_lightning(c, n);
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.window = c.count("sliding_window", 0);
  Experts experts =
      read_experts(c, n, "num_local_experts|num_experts", 8, "num_experts_per_tok", 2, n.width);
  experts.router.renormalize = Renormalize::in_place;
  if (c.rate("router_jitter_noise", 0) > 0) c.fail("router_jitter_noise", "is not supported");
  c.pass_over({"full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor",
               "linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor"});
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string(i % 2 == 0 ? "full_attention" : "linear_attention");
  });
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   LayerKind kind = llama_layer(n, full ? "full" : "lightning", attention, experts);
                   if (!full) kind.branches[0].body = Mixer{lightning};
                   for (Branch& branch : kind.branches) {
                     branch.of_normed = branch.multiplied = true;
                   }
                   return kind;
                 }));
}

// Llama with differential attention. Defaults: configuration_diffllama.py.
ModelSpec diffllama(const Config& c) {
  const Sizes n = read_sizes(c, {.hidden = 2048, .width = 8192, .vocab = 32000});
  if (n.kv_heads % 2 != 0) c.fail("num_key_value_heads", "is odd: values are taken in halves");
  if (c.rate("attention_dropout", 0) > 0) {
    c.fail("attention_dropout", "differential attention has none");
  }
  c.pass_over({"lambda_std_dev"});  // how its numbers start
  const DifferentialAttention attention{.heads = n.heads,
                                        .kv_heads = n.kv_heads,
                                        .head_dim = n.head_dim,
                                        .bias = c.flag("attention_bias", false),
                                        .rotary = {.dims = n.head_dim}};
  LayerKind layer = llama_layer(n, "differential", {}, llama_mlp(n));
  layer.branches[0].body = Mixer{attention};
  return decoder(n, layer);
}

}  // namespace

std::vector<Family> lightning_families() {
  return {{"MiniMaxForCausalLM", "minimax", minimax},
          {"DiffLlamaForCausalLM", "diffllama", diffllama}};
}

}  // namespace shardsim::models
