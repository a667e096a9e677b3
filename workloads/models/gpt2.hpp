// GPT-2 (Radford et al. 2019): learned positions, LayerNorm with bias, one fused projection for q,
// k and v, GELU, output weights tied to the embedding. Parameters are named and shaped as in
// Hugging Face transformers, whose Conv1D stores weights as [in, out]:
//
//   transformer.h.{}.attn.c_attn.weight [768, 2304] = [hidden, qkv*heads*head_dim]
//
// q, k and v are views of what c_attn makes. Dropout is left out (a note says so where the
// description asks for it).
#pragma once

#include "workloads/models/build.hpp"

namespace shardsim {

[[nodiscard]] Workload build_gpt2(const ModelConfig& config, const WorkloadOptions& options);

}  // namespace shardsim
