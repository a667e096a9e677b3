// The order in which Megatron-Core's modules register the parameters of a block, and which of ours
// are one parameter there. Gradient buffers lie in the reverse of it.
//
//   Llama's layer   input_layernorm; o_proj (linear_proj); q_proj, k_proj and v_proj (linear_qkv);
//                   post_attention_layernorm; gate_proj and up_proj (linear_fc1); down_proj
//
//   modules         in the order of use, but for an attention's output product, which the module
//                   registers before its others (Attention.__init__, then SelfAttention.__init__;
//                   megatron/core/transformer/attention.py of core 0.20)
//   latents         norms between two products of an attention are behind its products in modules
//                   of the local specification (multi_latent_attention.py, MLASelfAttention), and
//                   in Transformer Engine's with the product that follows
//   head            the last norm; layers of multi-token prediction; the product that makes logits
//                   (models/gpt/gpt_model.py)
//   one parameter   products that read the same activation and make heads, or the width of one
//                   feed-forward layer
#pragma once

#include <vector>

#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Parameters that are one in a buffer.
using RegisteredParameter = std::vector<TensorId>;

// Of all trained parameters that belong to the block (Tensor::block); `local`: the modules are of
// the local specification.
[[nodiscard]] std::vector<RegisteredParameter> registered_parameters(const Workload& workload,
                                                                     std::size_t block, bool local);
// A stage's own copy of a table that another stage looks up in as well, of multi-token prediction:
// it is registered before all else (megatron/core/models/gpt/gpt_model.py, mtp_process).
[[nodiscard]] bool is_copied_table(const Workload& workload, std::size_t block, TensorId parameter);
// Weights, trained or not, whose products are one.
[[nodiscard]] std::vector<std::vector<TensorId>> joint_weights(const Workload& workload,
                                                               std::size_t block);
// The same as registered_parameters, each by itself and module by module in the order of their
// first use, as parameters() of a PyTorch module has them: its own before those of modules in it.
[[nodiscard]] std::vector<RegisteredParameter> used_parameters(const Workload& workload,
                                                               std::size_t block);

// One by one, as autograd hands over the gradients that the pass makes: of a product its bias first
// (aten::addmm, of torch.nn.Linear with the weight's transpose behind it), of a convolution its
// weight. `linear_functions`: torch.nn.Linear is a function that returns the weight's first
// (DeepSpeed's ZeRO 3, zero/linear.py).
[[nodiscard]] std::vector<RegisteredParameter> made_parameters(const Workload& workload,
                                                               const BlockPass& backward,
                                                               std::size_t block,
                                                               bool linear_functions);

// By tensor: orders a block's parameters as PyTorch's models register them: those of attention or
// mixer, of the feed-forward layer, then norms (transformers); norms before the feed-forward layer
// where attention has latents or sinks and `titan` (torchtitan 0.3, models/deepseek_v3/model.py and
// gpt_oss/model.py). Within each as they are used.
[[nodiscard]] std::vector<std::size_t> torch_places(const Workload& workload, bool titan);

}  // namespace shardsim
