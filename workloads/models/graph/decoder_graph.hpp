// The op graph of a decoder from its description: each component of the spec adds its labels,
// parameters (names and shapes as the spec has them) and ops; a kind of layer is a kind of block.
//
//   Workload w = build_decoder_graph(read_model(config, "mistral-7b"), options, config.place());
//
// One layer of Llama, with the labels of what it makes (b batch, s sequence, k kv_heads, g group):
//
//   input_layernorm    x[b, s, hidden]      -> n
//   q_proj             n, [k*g*head_dim, hidden] -> q[b, s, k, g, head_dim]
//   k_proj, v_proj     n, [k*head_dim, hidden]   -> k, v[b, s, k, head_dim]
//   (q_norm, k_norm)   Qwen3
//   rope               q, k; of a part of each head: views of both parts, and one copy
//   attention          q, k, v              -> [b, s, k, g, head_dim]
//   o_proj             [hidden, k*g*head_dim] -> [b, s, hidden], added to x
//
// Experts: experts_graph.cpp; latent attention: latent_attention_graph.cpp.
//
// Of a fused projection queries, keys and values are views: [qkv*heads*head_dim, hidden] of GPT-2,
// [k*(g + 2)*head_dim, hidden] of all others. Branches of one input (Cohere, Phi) are added up
// before the stream is added, so that their partial sums are reduced together.
//
// Throws InputError for a component that has no op graph: parameters and counts of it are known
// (`shardsim model`), a training step is not. Nothing is approximated in its place. Dropout is left
// out, which the caller says (described_model.hpp). The sequence fits the model's positions.
#pragma once

#include "workloads/models/build.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim::models {

// Whether it is one stack that reads tokens, with a causal language model's head: what has an op
// graph if its components have. require_decoder throws InputError where it is not.
[[nodiscard]] bool is_decoder(const ModelSpec& spec);
void require_decoder(const ModelSpec& spec, const Place& place);

[[nodiscard]] Workload build_decoder_graph(const ModelSpec& spec, const WorkloadOptions& options,
                                           const Place& place);

}  // namespace shardsim::models
