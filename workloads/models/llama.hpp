// Llama and its kin: LlamaForCausalLM (Touvron et al. 2023, arXiv:2302.13971; 3.1:
// arXiv:2407.21783) and Qwen3ForCausalLM, which normalizes every head of q and k. Parameters are
// named and shaped as in Hugging Face transformers.
//
// One layer, with the labels of what it makes (b batch, s sequence, k kv_heads, g group):
//
//   input_layernorm    x[b, s, hidden]      -> n
//   q_proj             n, [k*g*head_dim, hidden] -> q[b, s, k, g, head_dim]
//   k_proj, v_proj     n, [k*head_dim, hidden]   -> k, v[b, s, k, head_dim]
//   (q_norm, k_norm)   Qwen3
//   rope               q, k
//   attention          q, k, v              -> [b, s, k, g, head_dim]
//   o_proj             [hidden, k*g*head_dim] -> [b, s, hidden], added to x
//   post_attention_layernorm, gate_proj, silu, up_proj, product, down_proj, added
#pragma once

#include "workloads/models/build.hpp"

namespace shardsim {

[[nodiscard]] Workload build_llama(const ModelConfig& config, const WorkloadOptions& options);
[[nodiscard]] Workload build_qwen3(const ModelConfig& config, const WorkloadOptions& options);

}  // namespace shardsim
