// MaxText's decoders: layers scanned along dimension 1 (param_scan_axis), kernels
// [in, heads, head], gate and up of an MLP as wi_0 and wi_1, logical axes as its modules say them.
//
//   model.layers.{}.self_attn.q_proj.weight of 32 layers is
//   decoder/layers/self_attention/query/kernel [4096, 32, 32, 128]    embed, layers, q_heads, kv
//
// Layers that differ by their place in a cycle (GPT-OSS, Gemma 3, Llama 4, OLMo 3) are layers_0,
// layers_1, ... of a scanned block; those that are left over of Gemma 3 lie unscanned in
// layers_remainder; Gemma 2 has two layers in one module. Those before the last of a cycle of Gemma
// 4 and Qwen3-Next are scanned within the block: [embed, layers, local_layers, ...]. DeepSeek's
// dense layers and those with experts are stacks of their own; small Gemma 4 is not scanned.
//
// Two versions: "maxtext" names dimensions as e591f30 does, "maxtext-0.2.5" as the release of that
// number, where attention reads "embed_attn" and routers "embed_router". Names and shapes are the
// same.
//
// Sources: AI-Hypercomputer/maxtext at e591f30, models/*.py, layers/{attentions,attention_mla,
// linears,moe}.py, and the records of tests/golden/param_trees; maxtext 0.2.5 of PyPI, whose models
// were built without data (nnx.eval_shape).
#pragma once

#include <optional>
#include <vector>

#include "workloads/views/view.hpp"

namespace shardsim {

[[nodiscard]] ViewedLayers maxtext_layers(const ViewInput& input);
[[nodiscard]] std::optional<ViewedParameter> maxtext_parameter(const ViewInput& input,
                                                               TensorId parameter);
[[nodiscard]] std::optional<ViewedParameter> maxtext_025_parameter(const ViewInput& input,
                                                                   TensorId parameter);

}  // namespace shardsim
