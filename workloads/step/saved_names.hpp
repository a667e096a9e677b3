// What of a layer the words of frameworks mean: names of activations, policies, modules.
//
// Names are those that MaxText gives with checkpoint_name (src/maxtext/layers: attentions.py,
// linears.py, moe.py, attention_mla.py):
//
//   decoder_layer_input      what enters the layer
//   query_proj (q), key_proj (k), value_proj (v), qkv_proj (all)   what attention reads, rotated
//   context                  what attention makes, the logsumexp with it
//   out_proj                 its output projection
//   mlpwi, mlpwo             first and last products of an MLP; where gate and up are two products
//                            mlpwi_0 and mlpwi_1
//   moe_mlpwi, moe_mlpwo     those of routed experts, likewise
//   mla_q, mla_kv            latents after their norms; q_wa_proj, kv_wa_proj before
//
// Policies are MaxText's (remat_policy) and JAX's (jax.checkpoint_policies): sets of such names, or
// results of products:
//
//   full, nothing_saveable               nothing beside what enters the layer
//   none, everything_saveable            all
//   minimal                              q, k, v, out_proj, mlpwi, mlpwo
//   minimal_with_context, minimal_flash  and context
//   save_dot_with_context_except_mlp     q, k, v, context, out_proj
//   save_dot_except_mlpwi                q, k, v, out_proj, mlpwo
//   save_dot_except_mlp                  q, k, v, out_proj
//   save_qkv_proj, save_out_proj         q, k, v; out_proj
//   qkv_proj_offloaded, minimal_offloaded, offload_dot_with_no_batch_dims   as save_qkv_proj,
//                                        minimal and checkpoint_dots, on the host
//   checkpoint_dots, dots_saveable, and with _with_no_batch_dims   results of matmuls. Attention is
//                                        a kernel, not a dot; nor are products grouped by expert
//   every_other_product                  the first, third, fifth, ... of them, attention, what a
//                                        router chooses, and what calls scatter and exchange: what
//                                        torchtitan's checkpoints per operation keep (SelectiveAC,
//                                        torchtitan 0.3.0, distributed/activation_checkpoint.py;
//                                        queries, keys and values are one product)
//
// Modules are Megatron's (--recompute-modules): core_attn, mlp, moe, shared_experts are repeated
// whole from what enters them; layernorm, moe_act, mla_up_proj and, beside Megatron's, norm (every
// norm) and activation (of MLPs and experts) throw their results away, too. These are made again
// before what reads them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

inline constexpr std::string_view every_other_product = "every_other_product";

[[nodiscard]] std::vector<std::string> saved_names();
// The activations of a block that a name means; nothing for what is no name.
[[nodiscard]] std::optional<std::vector<TensorId>> saved_by_name(const Block& block,
                                                                 std::string_view name);

[[nodiscard]] std::vector<std::string> saving_policies();
// Those that move what they keep to the host.
[[nodiscard]] std::vector<std::string> offloading_policies();
[[nodiscard]] bool is_offloading(std::string_view policy);
// The policy that keeps the same on the device: "qkv_proj_offloaded": "save_qkv_proj".
[[nodiscard]] std::string_view on_device(std::string_view policy);
// Results of a block's ops that a policy keeps; all of them under "none".
[[nodiscard]] std::vector<TensorId> saved_by_policy(const Block& block, std::string_view policy);

[[nodiscard]] std::vector<std::string> module_names();          // and other spellings of them
[[nodiscard]] std::vector<std::string> offload_module_names();  // and those that are only moved
[[nodiscard]] std::string module_named(std::string_view word);  // "core_attention": "core_attn"
[[nodiscard]] bool is_of(const Op& op, std::string_view module);
// Whether what leaves the module is thrown away, too.
[[nodiscard]] bool discards_results(std::string_view module);

}  // namespace shardsim
