// Doge: attention with a mask made of values, branches added to a stream that is scaled by learned
// factors, and perhaps experts that are rows of tables (transformers 5.23, modeling_doge.py).
#include <cmath>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

Body feed_forward(const Config& c, const Sizes& n) {
  c.pass_over({"num_experts", "num_experts_per_tok", "norm_topk_prob", "router_aux_loss_coef"});
  const bool bias = c.flag("mlp_bias", false);
  if (!c.flag("is_moe", false)) {
    Mlp mlp = llama_mlp(n);
    mlp.bias = bias;
    return mlp;
  }
  if (c.flag("norm_topk_prob", false)) {
    c.fail("norm_topk_prob",
           "divides in place what autograd keeps: the class cannot be trained so");
  }
  RetrievedExperts experts{.width = n.width, .bias = bias, .activation = n.activation};
  experts.experts = c.size("num_experts", 16384);
  experts.keys =
      static_cast<std::int64_t>(std::floor(std::sqrt(static_cast<double>(experts.experts))));
  experts.per_token = c.size("num_experts_per_tok", 64);
  if (experts.per_token > experts.keys * experts.keys) {
    c.fail("num_experts_per_tok", "is more than pairs of keys");
  }
  return Mixer{experts};
}

ModelSpec doge(const Config& c) {
  const Sizes n = read_sizes(c, {});
  static_cast<void>(c.count("sliding_window", 0));  // a mask, of which the kernel knows nothing
  DynamicMaskAttention attention;
  attention.heads = n.heads;
  attention.kv_heads = n.kv_heads;
  attention.head_dim = n.head_dim;
  attention.bias = c.flag("attention_bias", false);
  attention.rotary.dims = n.head_dim;
  attention.norm = {n.norm, ""};
  attention.kept = c.size("keep_window_size", 2048);
  attention.dropout = c.rate("attention_dropout", 0);
  const double dropout = c.rate("hidden_dropout", 0);
  // Read before what holds it is made: an error on the way would leave that half made.
  const Body read = feed_forward(c, n);
  LayerKind layer{.name = "full",
                  .branches = {{.before = {n.norm, "input_layernorm"},
                                .body = Mixer{attention},
                                .stream_scale = "input_residual",
                                .dropout = dropout},
                               {.before = {n.norm, "post_attention_layernorm"},
                                .body = read,
                                .stream_scale = "post_attention_residual",
                                .dropout = dropout}}};
  return decoder(n, layer);
}

}  // namespace

std::vector<Family> doge_families() { return {{"DogeForCausalLM", "doge", doge}}; }

}  // namespace shardsim::models
