// Which kernels a stack launches for the ops of a block, and with which bytes: what one device
// does, as partitioned, rewritten pattern by pattern.
//
//   eager               PyTorch, op by op: RMSNorm and rotary embeddings are several kernels in
//                       fp32, squared ReLU two
//   compiled            torch.compile: what is element by element is one kernel with its neighbours
//   transformer-engine  Megatron with NVIDIA's kernels: gated activations are one kernel, products
//                       of 8 and 4 bits quantize what they read
//   xla                 as compiled
//
// Each pattern has its source where it is written (kernel_lists.cpp). What a strategy does not say
// ("kernels" is null) stays one kernel for each op, as it reads and writes what it must.
//
// Example: SwiGLU of n numbers in bf16 is silu (2 n + 2 n bytes) and a product (4 n + 2 n) in eager
// PyTorch; Transformer Engine reads both halves once and writes one, 6 n.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "strategies/partition/spmd.hpp"

namespace shardsim {

struct KernelChoice {
  std::string stack;           // "eager"
  std::string attention;       // generation of its kernel: "flash-2", "unfused"
  bool fused_softmax = false;  // of unfused attention: with its scale and mask
  bool fused_dropout = false;  // with the sum behind it
  // Products of experts are launched one by one: Transformer Engine's GroupedLinear. Steps without
  // gradients have one kernel, as engines that serve have.
  bool experts_in_turn = false;
  bool scales_tensors = false;  // of 8 bits: by the largest number of each tensor as it is now
  // Kernels that quantize the rows of one expert, where products are in turn; 0: one for all rows.
  std::int32_t casts_of_expert = 0;
  // What lies where (kernel_memory.hpp).
  bool joint_projections = false;  // queries, keys and values are one product
  bool casting_routers = false;    // read what they are given in its own type
  bool loss_in_place = false;
  bool fused_loss = false;     // its last two sums over a split vocabulary are one call
  bool compiled_loss = false;  // one kernel from the logits, and one back
};

// Names for "fused" in a strategy's "kernels".
[[nodiscard]] const std::vector<std::string>& fusions();
// Whether one changes times or memory; of the others a note says that they do not yet.
[[nodiscard]] bool acts(const std::string& fusion);

// Of a strategy's "kernels", not null.
[[nodiscard]] KernelChoice kernel_choice(const Json& kernels);

// Whose host issues its kernels; empty where nothing is said, and where a whole step is one graph.
[[nodiscard]] std::string issuer(const Json& kernels);

// Where no stack is named, as if it padded rows that are no multiples of 8 numbers.
[[nodiscard]] SpmdStep with_padded_products(SpmdStep step);

[[nodiscard]] SpmdStep list_kernels(SpmdStep step, const KernelChoice& choice);

}  // namespace shardsim
