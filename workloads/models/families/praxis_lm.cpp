// praxis' TransformerLm as the constants of a Pax experiment make it (google/praxis 1.4.0,
// layers/transformer_models.py; google/paxml 1.4.0, tasks/lm/model_params.py). Not a class of
// transformers: attention without biases beside MLPs that have them, a head with one, a factor of
// each dimension of queries, positions of sines.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

Attention praxis_attention(const Config& c, const Sizes& n, const std::string& positions) {
  Attention attention = llama_attention(c, n);
  const bool bias = c.flag("use_bias", false);
  set_biases(attention, bias, bias);
  attention.rotary.dims = positions == "rope" ? n.head_dim : 0;
  attention.soft_cap = c.cap("attention_cap", 0);
  attention.bidirectional = c.flag("bidirectional", false);
  if (c.flag("combine_qkv", true)) attention.form = QkvForm::fused;
  if (c.flag("per_dim_scale", true)) {
    attention.q_norm = {NormKind::weight, "per_dim_scale"};
  }
  return attention;
}

// Top-2 gating; MLPs of experts have no biases (TransformerFeedForwardMoe).
Experts praxis_experts(const Config& c, const Sizes& n, bool gated) {
  Experts experts = read_experts(c, n, "num_experts", 8, "num_experts_per_tok", 2, n.width);
  experts.gate = gated ? ExpertsGate::gated : ExpertsGate::plain;
  return experts;
}

ModelSpec praxis_lm(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true, .activation = "relu"});
  const bool rms = c.choice("normalization", "layer", {"layer", "rms"}) == "rms";
  n.norm = rms ? NormKind::rms : NormKind::layer;
  const std::string positions =
      c.choice("position_embedding", "sinusoidal", {"sinusoidal", "learned", "rope"});
  const bool gated = c.flag("gated", false);
  Mlp mlp = llama_mlp(n);
  mlp.bias = true;
  if (!gated) mlp.form = MlpForm::plain;
  Body feed_forward = mlp;
  if (c.given("num_experts")) feed_forward = praxis_experts(c, n, gated);
  c.pass_over({"num_experts_per_tok", "max_position_embeddings"});  // where there are none
  LayerKind layer =
      llama_layer(n, "layer", praxis_attention(c, n, positions), std::move(feed_forward));
  for (Branch& branch : layer.branches) branch.before.bias = !rms;
  ModelSpec spec = decoder(n, layer);
  Stack& stack = spec.stacks[0];
  stack.norm.bias = !rms;
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.scaled = c.flag("scaled_embedding", true);
  if (positions == "learned") {
    input.positions = "model.embed_positions";
    input.position_rows = c.size("max_position_embeddings", 16384);
  }
  spec.head.bias = c.flag("head_bias", true);
  spec.head.soft_cap = c.cap("logit_cap", 0);
  set_tied(spec, n.tied);
  return spec;
}

}  // namespace

std::vector<Family> praxis_families() { return {{"TransformerLm", "praxis_lm", praxis_lm}}; }

}  // namespace shardsim::models
