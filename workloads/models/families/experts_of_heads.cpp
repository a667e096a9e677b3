// Mixtures of experts whose matrices lie otherwise than stacked, or whose attention has experts:
// DBRX, JetMoE.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

Experts dbrx_experts(const Config& c) {
  Experts experts;
  experts.name = "ffn";
  experts.experts_name = "experts.mlp";
  experts.experts = 4;
  experts.per_token = 1;
  experts.width = 3584;
  experts.router = {.name = "router.layer", .renormalize = Renormalize::clamped};
  experts.matrices = ExpertMatrices::rows;
  experts.gate_apart = "w1";
  experts.gate_up = "v1";
  experts.down = "w2";
  if (const auto part = c.sub("ffn_config")) {
    experts.experts = part->size("moe_num_experts", 4);
    experts.per_token = part->size("moe_top_k", 1);
    experts.width = part->size("ffn_hidden_size", 3584);
    if (const auto act = part->sub("ffn_act_fn"))
      experts.activation = act->activation("name", "silu");
    part->pass_over({"moe_jitter_eps", "moe_loss_weight", "moe_normalize_expert_weights",
                     "hidden_size", "uniform_expert_assignment"});
    if (experts.per_token > experts.experts)
      part->fail("moe_top_k", "is more than there are experts");
  }
  return experts;
}

// Its sizes are in two objects; matrices of all experts lie in rows.
ModelSpec dbrx(const Config& c) {
  Sizes n;
  n.hidden = c.needed("d_model|hidden_size", 2048);
  n.layers = c.layers("n_layers|num_hidden_layers", 24);
  n.heads = c.needed("n_heads|num_attention_heads", 16);
  n.vocab = c.needed("vocab_size", 32000);
  n.head_dim = c.divided("d_model", n.hidden, "n_heads", n.heads);
  n.norm = NormKind::layer;
  n.kv_heads = 1;
  Attention attention;
  attention.heads = n.heads;
  attention.head_dim = attention.rotary.dims = n.head_dim;
  if (const auto part = c.sub("attn_config")) {
    n.kv_heads = part->size("kv_n_heads", 1);
    attention.dropout = part->rate("attn_pdrop", 0);
    static_cast<void>(part->cap("clip_qkv", 0));  // what they are clamped to, which they are
    part->pass_over({"rope_theta"});
  }
  attention.kv_heads = n.kv_heads;
  attention.name = "norm_attn_norm.attn";
  attention.form = QkvForm::fused;
  attention.qkv = "Wqkv";
  attention.o = "out_proj";
  attention.clamped = true;
  c.pass_over({"num_key_value_heads", "max_seq_len"});
  const Experts experts = dbrx_experts(c);
  const double dropout = c.rate("resid_pdrop", 0);
  ModelSpec spec = decoder(
      n, {.name = "experts",
          .branches = {
              {.before = {n.norm, "norm_attn_norm.norm_1"}, .body = attention, .dropout = dropout},
              {.before = {n.norm, "norm_attn_norm.norm_2"}, .body = experts, .dropout = dropout}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.blocks";
  stack.norm = {n.norm, "transformer.norm_f"};
  stack.input = TokenEmbedding{.name = "transformer.wte",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .dropout = c.rate("emb_pdrop", 0)};
  set_tied(spec, c.flag("tie_word_embeddings", false));
  return spec;
}

// Experts of attention heads, then of MLPs, both with the softmax of the largest logits.
ModelSpec jetmoe(const Config& c) {
  Sizes n;
  n.hidden = c.needed("hidden_size", 2048);
  n.layers = c.layers("num_hidden_layers", 12);
  n.vocab = c.needed("vocab_size", 32000);
  n.width = c.needed("intermediate_size|ffn_hidden_size", 5632);
  n.activation = c.activation("activation_function", "silu");
  Experts experts = read_experts(c, n, "num_local_experts|moe_num_experts", 8,
                                 "num_experts_per_tok|moe_top_k", 2, n.width);
  experts.experts_name = "";
  experts.router = {.name = "router.layer",
                    .scores = RouterScores::softmax_of_top,
                    .fp32_logits = true,
                    .cast_back = true};
  experts.gate_up = "input_linear.weight";
  experts.down = "output_linear.weight";
  experts.out_bias = "bias";
  AttentionExperts attention;
  attention.experts = experts.experts;
  attention.per_token = experts.per_token;
  attention.kv_heads = c.size("num_key_value_heads", 16);
  attention.head_dim = c.size("kv_channels|head_dim", 128);
  attention.router = experts.router;
  attention.rotary.dims = attention.head_dim;
  attention.dropout = c.rate("attention_dropout", 0);
  c.pass_over({"num_attention_heads"});  // num_key_value_heads * num_experts_per_tok
  LayerKind layer = llama_layer(n, "experts", {}, experts);
  layer.branches[0].body = attention;
  n.tied = c.flag("tie_word_embeddings", true);
  return decoder(n, layer);
}

}  // namespace

std::vector<Family> experts_of_heads_families() {
  return {{"DbrxForCausalLM", "dbrx", dbrx}, {"JetMoeForCausalLM", "jetmoe", jetmoe}};
}

}  // namespace shardsim::models
