// nanotron: Megatron's tensor parallelism on plain PyTorch, gradients added up in fp32 behind DDP:
//
//   gradients    bf16, of the whole pass, beside an fp32 buffer of all; where devices reduce them
//                DDP's buckets of bf16 as well, whose hook adds to the buffer and reduces it
//   state        fp32 parameters and moments; under ZeRO 1 (distributed_optimizer) in parts, of
//                which all updated parameters are gathered in one call
//   activations  what a product reads from all devices of the model axis is kept as gathered
//                ("saved_inputs": "sharded" is its tp_recompute_allgather); the loss makes its
//                tensors anew, one by one
//
// Bytes of a parameter: 2, 4 for the buffer, 2 for DDP's buckets, 12 of state over the devices of
// ZeRO 1; 2 for gradients while a pass goes back.
//
//   key                    values                              when left out
//   distributed_optimizer  true, false                         true (zero_stage 1)
//   bucket_elements        a number                            13,107,200: ddp_bucket_cap_mb 25
//
// Layers are dealt out to stages by their cost beside the head's (layout/stage_costs.hpp), unless
// the pipeline says how they lie.
// Sources: nanotron 0.4 and 0.5 (2024, 2025), optim/gradient_accumulator.py, optim/zero.py,
// helpers.py, parallel/tensor_parallel/functional.py, models/llama.py. Mixtures of experts and
// context parallelism are not taken from there.
#pragma once

#include "strategies/frameworks/framework.hpp"

namespace shardsim {

[[nodiscard]] Framework nanotron_framework();

}  // namespace shardsim
