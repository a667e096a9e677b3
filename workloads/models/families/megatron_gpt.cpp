// Megatron-Core's GPTModel as its arguments make it (transformer_config.py): any of its norms,
// positions, activations and biases with each other, dense or with experts. Not a class of
// transformers: what those of it cannot say.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

std::string one_of(const Config& c, std::string_view key, std::string_view otherwise,
                   const std::vector<std::string_view>& known) {
  std::string word = c.text(key, otherwise);
  if (std::find(known.begin(), known.end(), word) == known.end()) {
    std::string message = "is none of";
    for (const std::string_view one : known) message += fmt::format(" {}", one);
    c.fail(key, message);
  }
  return word;
}

Attention gpt_attention(const Config& c, const Sizes& n, const std::string& positions, bool bias) {
  Attention attention = llama_attention(c, n);
  set_biases(attention, bias || c.flag("qkv_bias", false), bias);
  attention.window = c.count("sliding_window", 0);
  attention.rotary.dims = positions == "rope" ? rotary_dims(c, n.head_dim, 1.0) : 0;
  if (c.flag("qk_norm", false)) {
    attention.q_norm = {n.norm, "q_norm", n.norm == NormKind::layer};
    attention.k_norm = {n.norm, "k_norm", n.norm == NormKind::layer};
  }
  return attention;
}

Experts gpt_experts(const Config& c, const Sizes& n, const Mlp& mlp) {
  Experts experts = read_experts(c, n, "num_experts", 8, "num_experts_per_tok", 2,
                                 c.size("moe_intermediate_size", n.width));
  const bool sigmoid = one_of(c, "router_scores", "softmax", {"softmax", "sigmoid"}) == "sigmoid";
  experts.router.scores = sigmoid ? RouterScores::sigmoid : RouterScores::softmax_of_top;
  experts.gate = mlp.form == MlpForm::gated ? ExpertsGate::gated : ExpertsGate::plain;
  experts.bias = mlp.bias;
  if (const std::int64_t width = c.count("shared_expert_intermediate_size", 0); width > 0) {
    experts.shared = mlp;
    experts.shared->name = "shared_expert";
    experts.shared->width = width;
    if (c.flag("shared_expert_gate", false)) experts.shared_gate = "shared_expert_gate";
  }
  return experts;
}

ModelSpec megatron_gpt(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true, .activation = "gelu"});
  const bool rms = one_of(c, "normalization", "layer", {"layer", "rms"}) == "rms";
  n.norm = rms ? NormKind::rms : NormKind::layer;
  const std::string positions =
      one_of(c, "position_embedding", "learned", {"learned", "rope", "none"});
  const bool bias = c.flag("use_bias", true);
  const Attention attention = gpt_attention(c, n, positions, bias);
  Mlp mlp = llama_mlp(n);
  mlp.bias = bias;
  if (!c.flag("gated", false)) mlp.form = MlpForm::plain;
  const bool routed = c.given("num_experts");
  c.pass_over({"router_scores", "shared_expert_gate", "shared_expert_intermediate_size",
               "num_experts_per_tok", "moe_intermediate_size"});  // of the dense
  const Experts experts = routed ? gpt_experts(c, n, mlp) : Experts{};
  const std::int64_t dense = c.count("first_k_dense_replace", 0);
  const auto norm = [&](const char* name) { return rms ? Norm{n.norm, name} : layer_norm(name); };
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool visits = routed && i >= dense;
                             LayerKind layer = visits
                                                   ? llama_layer(n, "experts", attention, experts)
                                                   : llama_layer(n, "dense", attention, mlp);
                             layer.branches[0].before = norm("input_layernorm");
                             layer.branches[1].before = norm("post_attention_layernorm");
                             return layer;
                           }));
  Stack& stack = spec.stacks[0];
  stack.norm = norm("model.norm");
  if (positions == "learned") {
    auto& input = std::get<TokenEmbedding>(stack.input);
    input.positions = "model.embed_positions";
    input.position_rows = c.needed("max_position_embeddings", 1024);
  }
  set_tied(spec, n.tied);
  return spec;
}

}  // namespace

std::vector<Family> megatron_families() { return {{"GPTModel", "megatron_gpt", megatron_gpt}}; }

}  // namespace shardsim::models
