// Adapters of low rank beside linear layers (LoRA, arXiv:2106.09685):
//
//   y = W x + scale * B (A x)        W [out, in], A [rank, in], B [out, rank]
//
// Example: rank 16 on q, k and v of Llama-3.1-8B (4096 -> 4096, 1024, 1024): A of each 16 * 4096;
// or one A for all three, as Megatron's fused linear_qkv has it: 16 * (4096 + 4096 + 1024 + 1024).
//
// Targets:
//   linear_qkv    an attention's input projections, one A for all that read the same
//   linear_proj   its output projection
//   linear_fc1    first products of an MLP, one A for gate and up
//   linear_fc2    its last product
//   attention, mlp   the former two, the latter two
//   any other     a regular expression on names of weights: each with its own A and B (PEFT)
//
// A product of each, the scale and the sum are ops of their own; dropout before A is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct Lora {
  std::int64_t rank = 16;
  std::vector<std::string> targets{};
  friend bool operator==(const Lora&, const Lora&) = default;
};

// Of the parameters that adapters are: "model.layers.{}.self_attn.q_proj.lora_A.weight".
inline constexpr std::string_view adapter_names = R"(\.lora_[AB]\.weight$)";

// The workload has its forward pass alone. Throws InputError at `place`: a target that no linear
// layer is, or experts, whose products are grouped.
void add_adapters(Workload& workload, const Lora& lora, const Place& place);

}  // namespace shardsim
