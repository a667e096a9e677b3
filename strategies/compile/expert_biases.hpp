// What Megatron-Core does of its own to experts with biases, beside Transformer Engine's products:
//
//   clamps   both halves of what the first product makes are cut off and put together again before
//            the fused activation: 4 and 4 bytes a number of two; backward 6 and 4
//            (megatron/core/fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl of 0.16.1)
//   biases   of the last product, expert by expert: bias times the routers' weights, a sum, all
//            experts' rows put together: 2, 6 and 4 bytes, 4, 10 and 8 and a cast of 6 where the
//            routers' weights are fp32. Backward the gradient times the weights and times the bias,
//            each 4 bytes, and their sums, each 2, and the rows of all experts put together, 2;
//            with fp32 weights 6, 6, 4 and 4, and 18 of casts and rows
//            (megatron/core/transformer/moe/experts.py, TEGroupedMLP._apply_bias)
//
// The first product adds its bias itself, and the product of its weights' gradient makes that of
// the bias. All models with biases on their experts clamp (GPT-OSS and its kin). The clamped copy's
// memory and the host's time for kernels of each expert are left out.
//
// Example: GPT-OSS 120B, 16,384 tokens on B200: 65,536 rows of 2,880 and 5,760 numbers, 2.3 and
// 3.0 GB forward, 2.6 and 3.8 GB backward: 1.8 ms of a layer.
#pragma once

#include <vector>

#include "strategies/partition/spmd.hpp"

namespace shardsim {

// Of one pass over a block of a mixture, before rows are padded.
void add_expert_biases(BlockPass& pass, std::vector<Value>& values);

}  // namespace shardsim
