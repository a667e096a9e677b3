// The op graph of a model from its description: each component of the spec adds its labels,
// parameters (names and shapes as the spec has them) and ops; a kind of layer is a kind of block.
//
//   Workload w = build_graph(read_model(config, "mistral-7b"), options, config.place());
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
// Experts: experts_graph.cpp; latent attention: latent_attention_graph.cpp; what enters a stack:
// input_graph.cpp; what reads its states: language_head.cpp, head_graph.cpp.
//
// Of a fused projection queries, keys and values are views: [qkv*heads*head_dim, hidden] of GPT-2,
// [k*(g + 2)*head_dim, hidden] of all others. Branches of one input (Cohere, Phi) are added up
// before the stream is added, so that their partial sums are reduced together.
//
// Stacks run one after another. An encoder's states go along beside the decoder's stream, from
// block to block, and so do the first tower's features of a pair; the bias of distances that T5's
// layers have in common is looked up where the stack begins. What nobody reads behind the last
// layer ends there, which makes that layer a kind of its own.
//
// Throws InputError for a component that has no op graph: parameters and counts of it are known
// (`shardsim model`), a training step is not. Nothing is approximated in its place. Dropout is left
// out, which the caller says (described_model.hpp). The sequence fits the model's positions.
#pragma once

#include "workloads/models/build.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim::models {

// Whether a sequence length is needed; whether a decoder reads what an encoder made.
[[nodiscard]] bool reads_tokens(const ModelSpec& spec);
[[nodiscard]] bool has_encoder(const ModelSpec& spec);
[[nodiscard]] bool encodes_tokens(const ModelSpec& spec);

[[nodiscard]] Workload build_graph(const ModelSpec& spec, const WorkloadOptions& options,
                                   const Place& place);

}  // namespace shardsim::models
