// What frameworks themselves refuse of a model: heads and tokens that do not go evenly over the
// devices of a mesh.
//
//   Llama 3.1 8B, 32 heads and 8 of keys and values, over tp 16: Megatron-Core has every head of
//   keys on two devices, torchtitan refuses it
#pragma once

#include "strategies/layout/assign.hpp"
#include "strategies/strategy.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

// torchtitan 0.3, models/common/decoder.py and trainer.py: tensor parallelism divides heads, also
// those of keys; tokens divide into parts for it, under sequence parallelism, times two for each
// device of the context. Neither a head that is the embedding nor multi-token prediction is split
// over stages (models/common/decoder.py, models/deepseek_v3/mtp.py).
void check_as_torchtitan(const Workload& workload, const Step& step, const Mesh& mesh,
                         const Strategy& options, const Layout& layout);

// Megatron-Core 0.16, transformer_config.py and tensor_parallel/mappings.py: tensor parallelism
// divides heads, and heads of keys or is divided by them; under sequence parallelism it divides
// the tokens of a device of the context. Transformer Engine 2.x, attention/dot_product_attention/
// context_parallel.py: windows where keys are gathered or heads exchanged, not in a ring.
void check_as_megatron(const Workload& workload, const Step& step, const Mesh& mesh,
                       const Strategy& options, const Layout& layout);

}  // namespace shardsim
